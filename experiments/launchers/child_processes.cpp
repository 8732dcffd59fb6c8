#include "experiments/launchers/child_processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "env/processes/forked.hpp"
#include "env/processes/start_program.hpp"
#include "experiments/launchers/how_it_ended.hpp"
#include "experiments/launchers/output_lines.hpp"

namespace troupe::experiments::launchers {
namespace {

constexpr std::size_t kLastLines = 20;

} // namespace

struct ChildProcesses::Child {
  ~Child() {
    close_if_open(ended);
    close_if_open(output);
    close_if_open(input);
  }
  pid_t process = -1;
  int ended = -1;  // pidfd
  int output = -1; // pipe; used only by the thread
  int input = -1;  // socket
  std::function<bool(std::string_view)> line;
  OutputLines lines;
  std::deque<std::string> last;
  std::optional<End> end; // guarded by the mutex, as `input` is
};

struct ChildProcesses::Request {
  std::shared_ptr<Child> child;
  const Start* what = nullptr;
  std::string problem = {};
  bool done = false;
};

ChildProcesses::ChildProcesses() : woken_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (woken_ < 0)
    throw std::runtime_error("cannot make an eventfd; raise the limit of open files (ulimit -n)");
  thread_ = std::jthread([this] { work(); });
}

ChildProcesses::~ChildProcesses() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake();
  thread_.join();
  for (auto& [id, child] : children_)
    if (!child->end) {
      ::kill(-child->process, SIGKILL);
      ::kill(child->process, SIGKILL);
      ::waitpid(child->process, nullptr, 0);
    }
  ::close(woken_);
}

void ChildProcesses::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(woken_, &one, sizeof one);
}

/// Runs on the object's thread, because the kernel kills a child when the thread that forked it
/// ends.
void ChildProcesses::fork_child(Child& child, const Start& what) {
  int out[2] = {-1, -1};
  int in[2] = {-1, -1};
  const auto fail = [&](const char* action) {
    const std::string reason = std::strerror(errno);
    for (int* end : {&out[0], &out[1], &in[0], &in[1]})
      close_if_open(*end);
    throw std::runtime_error(std::string("cannot start ") + what.words.at(0) + ": " + action + ": "
                             + reason);
  };
  if (::pipe2(out, O_CLOEXEC) != 0)
    fail("pipe");
  if (what.input ? ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0
                 : (in[1] = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
    fail("standard input");
  const auto environment = environment_with(what.environment);
  const auto words = exec_words(what.words);
  const auto variables = exec_words(environment);
  sigset_t none;
  ::sigemptyset(&none);
  child.process = start_child(SIGKILL, [&] {
    ::setpgid(0, 0);
    ::signal(SIGPIPE, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(in[1], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(out[1], STDERR_FILENO);
    ::execve(words[0], words.data(), variables.data());
    constexpr std::string_view kMessage = "it cannot be executed\n";
    (void)!::write(STDERR_FILENO, kMessage.data(), kMessage.size());
    ::_exit(127);
  });
  if (child.process < 0)
    fail("fork");
  ::setpgid(child.process,
            child.process); // both the child and this process set it; the order does not matter
  close_if_open(out[1]);
  close_if_open(in[1]);
  child.output = out[0];
  child.input = in[0];
  ::fcntl(child.output, F_SETFL, O_NONBLOCK);
  child.ended = watch_child(child.process);
}

ChildProcesses::Id ChildProcesses::start(Start what) {
  Request request{.child = std::make_shared<Child>(), .what = &what};
  request.child->line = what.line;
  std::unique_lock lock(mutex_);
  requests_.push_back(&request);
  wake();
  changed_.wait(lock, [&] { return request.done; });
  if (!request.problem.empty())
    throw std::runtime_error(request.problem);
  children_[++next_] = request.child;
  wake();
  return next_;
}

std::vector<std::shared_ptr<ChildProcesses::Child>> ChildProcesses::running() const {
  std::vector<std::shared_ptr<Child>> result;
  for (const auto& [id, child] : children_)
    if (!child->end)
      result.push_back(child);
  return result;
}

void ChildProcesses::work() {
  std::vector<std::shared_ptr<Child>> children;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      for (; !requests_.empty(); requests_.pop_front()) {
        Request& request = *requests_.front();
        try {
          fork_child(*request.child, *request.what);
        } catch (const std::exception& error) {
          request.problem = error.what();
        }
        request.done = true;
        changed_.notify_all();
      }
      if (ending_) // the remaining children die with this thread
        return;
      children = running();
    }
    std::vector<pollfd> watched{{woken_, POLLIN, 0}};
    for (const auto& child : children) {
      watched.push_back({child->ended, POLLIN, 0});
      watched.push_back({child->output, POLLIN, 0});
    }
    ::poll(watched.data(), watched.size(), -1);
    std::uint64_t count = 0;
    if (watched[0].revents != 0)
      (void)!::read(woken_, &count, sizeof count);
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (watched[2 + 2 * i].revents != 0)
        drain(*children[i], false);
      if (watched[1 + 2 * i].revents != 0)
        collect(*children[i]);
    }
  }
}

/// Reads all available output; with `to_the_end`, also a last line without a newline.
void ChildProcesses::drain(Child& child, bool to_the_end) {
  const auto show = [&](std::string_view line) {
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    const bool keep = !child.line || child.line(line);
    if (keep && line.find_first_not_of(" \t") != std::string_view::npos) {
      child.last.emplace_back(line);
      if (child.last.size() > kLastLines)
        child.last.pop_front();
    }
  };
  child.lines.read(child.output, show);
  if (to_the_end)
    child.lines.finish(show);
}

void ChildProcesses::collect(Child& child) {
  siginfo_t about{};
  const auto process = static_cast<id_t>(child.process);
  if (::waitid(P_PID, process, &about, WEXITED | WNOWAIT | WNOHANG) != 0 || about.si_pid == 0)
    return;
  ::kill(-child.process, SIGKILL); // before the number can be reused
  drain(child, true);
  close_if_open(child.output); // a process that left the group may keep the pipe open
  const std::lock_guard lock(mutex_);
  ::waitid(P_PID, process, &about, WEXITED);
  close_if_open(child.input);
  const bool exited = about.si_code == CLD_EXITED;
  child.end = End{.good = exited && about.si_status == 0,
                  .exit_code = exited ? about.si_status : -1,
                  .how = how_it_ended(about),
                  .last_lines = {child.last.begin(), child.last.end()}};
  changed_.notify_all();
}

std::shared_ptr<ChildProcesses::Child> ChildProcesses::find(Id child) const {
  const auto found = children_.find(child);
  return found == children_.end() ? nullptr : found->second;
}

bool ChildProcesses::write(Id id, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    int input = -1;
    {
      const std::lock_guard lock(mutex_);
      const auto child = find(id);
      if (!child || child->input < 0)
        return false;
      const ssize_t count =
          ::send(child->input, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0)
        bytes.remove_prefix(static_cast<std::size_t>(count));
      else if (errno != EAGAIN && errno != EINTR)
        return false;
      if (count > 0)
        continue;
      input = ::fcntl(child->input, F_DUPFD_CLOEXEC, 0); // it may be closed during the wait
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{input, POLLOUT, 0};
    const bool taken =
        left > 0 && ::poll(&ready, 1, static_cast<int>(std::min<long>(left, 60'000))) >= 0;
    ::close(input);
    if (!taken || Clock::now() >= deadline)
      return false;
  }
  return true;
}

void ChildProcesses::close_input(Id id) {
  const std::lock_guard lock(mutex_);
  if (const auto child = find(id))
    close_if_open(child->input);
}

void ChildProcesses::send(Id id, int signal) const {
  const std::lock_guard lock(mutex_);
  const auto child = find(id);
  if (child && !child->end)
    ::kill(child->process, signal);
}

void ChildProcesses::kill_group(Id id) const {
  const std::lock_guard lock(mutex_);
  const auto child = find(id);
  if (child && !child->end)
    ::kill(-child->process, SIGKILL);
}

std::optional<ChildProcesses::End> ChildProcesses::wait(Id id, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const auto child = find(id);
  if (!child)
    return std::nullopt;
  if (!changed_.wait_until(lock, deadline, [&] { return child->end.has_value(); }))
    return std::nullopt;
  children_.erase(id);
  return child->end;
}

ChildProcesses::End ChildProcesses::kill_and_wait(Id id) {
  std::optional<End> end;
  while (!end) {
    kill_group(id);
    end = wait(id, Clock::now() + std::chrono::seconds(1));
  }
  return *end;
}

Finished run_to_end(ChildProcesses& children, ChildProcesses::Start what,
                    ChildProcesses::Clock::time_point deadline) {
  const auto lines = std::make_shared<std::vector<std::string>>();
  what.line = [lines](std::string_view line) {
    lines->emplace_back(line);
    return true;
  };
  const auto id = children.start(std::move(what));
  const auto end = children.wait(id, deadline);
  auto made = end ? *end : children.kill_and_wait(id);
  return {.end = std::move(made), .lines = *lines, .late = !end};
}

} // namespace troupe::experiments::launchers
