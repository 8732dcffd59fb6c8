#include "experiments/commands/running/head_watch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "actors/supervision/head_record.hpp"
#include "actors/supervision/restart_budget.hpp"
#include "env/processes/forked.hpp"
#include "experiments/launchers/how_it_ended.hpp"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::commands {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kRemains{10}; // until all processes of a dead head must be gone
constexpr std::chrono::milliseconds kLook{100};
constexpr double kShareOfPatience = 0.25;           // the next head needs the rest
constexpr std::chrono::milliseconds kTogether{300}; // between deaths that have one cause

bool has_one_thread() {
  std::error_code error;
  const std::filesystem::directory_iterator threads("/proc/self/task", error);
  return !error && std::distance(begin(threads), end(threads)) == 1;
}

/// The message that a child sends when it calls begin().
struct HeadBeginning {
  actors::RestartBudget::Limits limits;
  double patience = 0; // seconds for which the run's processes wait for another head
  std::filesystem::path run;
};

/// The parent's side. It has one child at a time.
class HeadWatch {
public:
  HeadWatch() {
    if (::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0)
      throw std::runtime_error(std::string("cannot create a pipe: ") + std::strerror(errno)
                               + "; raise the limit of open files (ulimit -n)");
    ::sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGTSTP, SIGCONT, SIGCHLD})
      ::sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1); // orphans of a dead head become children of this process
  }
  ~HeadWatch() {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    for (const int end : pipe_)
      ::close(end);
  }
  HeadWatch(const HeadWatch&) = delete;
  HeadWatch& operator=(const HeadWatch&) = delete;

  /// Starts the process that outlives heads. Does not return in that process.
  void start_starter(const std::function<void(int)>& body) {
    if (!body || starter_ > 0)
      return;
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error(std::string("cannot create a socket: ") + std::strerror(errno)
                               + "; raise the limit of open files (ulimit -n)");
    std::fflush(nullptr);
    starter_ = start_child(SIGKILL, [&] {
      ::setpgid(0, 0);
      ::prctl(PR_SET_CHILD_SUBREAPER, 0);
      ::prctl(PR_SET_NAME, "troupe-nodes");
      ::close(ends[0]);
      body(ends[1]);
      ::_exit(0);
    });
    ::close(ends[1]);
    socket_ = ends[0];
    if (starter_ < 0)
      throw std::runtime_error(std::string("cannot start a process that starts nodes: ")
                               + std::strerror(errno));
  }

  int socket() const { return socket_; }
  /// Whether the starter has ended, too. Waits a moment, because whatever killed the child may kill
  /// the starter just after it.
  bool has_lost_starter() {
    const auto limit = Clock::now() + kTogether;
    while (starter_ > 0 && Clock::now() < limit) {
      siginfo_t about{};
      if (::waitid(P_PID, static_cast<id_t>(starter_), &about, WEXITED | WNOHANG) == 0
          && about.si_pid == starter_)
        lose_starter(about);
      else if (!sleep_for(kTogether / 30))
        break;
    }
    return lost_starter_;
  }

  /// Starts the child. Returns false in the child.
  bool start() {
    const pid_t parent = ::getpid();
    std::fflush(nullptr);
    child_ = ::fork();
    if (child_ < 0)
      throw std::runtime_error(std::string("cannot start the head: ") + std::strerror(errno));
    if (child_ > 0) {
      ::setpgid(child_, child_); // parent and child both call it, because either may run first
      groups_.push_back(child_);
      return true;
    }
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
      ::_exit(1); // the parent ended before prctl()
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    return false;
  }

  int descriptor() const { return pipe_[1]; }

  /// Waits for the child to end and passes signals on. Does not reap the child.
  siginfo_t wait() {
    for (;;) {
      if (const siginfo_t about = ended(); about.si_pid == child_)
        return about;
      siginfo_t from{};
      const int signal = ::sigwaitinfo(&signals_, &from);
      if (signal == SIGTSTP) {
        send(signal);
        ::raise(SIGSTOP);
      } else if (signal == SIGCONT) {
        send(signal);
      } else if (signal == SIGINT || (signal == SIGTERM && !tells_again(from))) {
        stopped_ = true;
        ::kill(child_, signal);
      }
    }
  }

  /// Kills everything that dead children started and waits until it is gone.
  void clear_remains() {
    send(SIGKILL);
    if (starter_ > 0)
      ::kill(starter_, SIGKILL);
    if (socket_ >= 0)
      ::close(socket_);
    starter_ = socket_ = -1;
    lost_starter_ = false;
    groups_.clear();
    const auto limit = Clock::now() + kRemains;
    while (Clock::now() < limit) {
      const pid_t gone = ::waitpid(-1, nullptr, WNOHANG);
      if (gone < 0)
        return; // no processes are left
      if (gone == 0)
        sleep_for(kLook);
    }
  }

  /// Returns false if a signal ended the run.
  bool sleep_for(Clock::duration time) {
    const auto limit = Clock::now() + time;
    while (!stopped_) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(limit - Clock::now());
      if (left.count() <= 0)
        return true;
      const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
      const int signal = ::sigtimedwait(&signals_, nullptr, &timeout);
      stopped_ = signal == SIGINT || signal == SIGTERM;
    }
    return false;
  }

  /// The message of the newest child; nothing if it died before sending one.
  std::optional<HeadBeginning> beginning() const {
    std::string text;
    char bytes[4096];
    for (ssize_t count; (count = ::read(pipe_[0], bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<std::size_t>(count));
    std::istringstream in(text);
    HeadBeginning said;
    std::string run;
    if (!(in >> said.limits.restarts >> said.limits.minutes >> said.patience) || in.get() != ' '
        || !std::getline(in, run, '\0'))
      return std::nullopt;
    said.run = run;
    return said;
  }

private:
  /// Whether the system has already told of the parent's end (PR_SET_PDEATHSIG). It tells once for
  /// each thread of the parent to which this process was handed on.
  bool tells_again(const siginfo_t& from) {
    int told_by = 0;
    ::prctl(PR_GET_PDEATHSIG, &told_by);
    return told_by == from.si_signo && from.si_pid == parent_ && std::exchange(parent_ended_, true);
  }

  /// Sends `signal` to the child and to what remains of earlier children. Skips a group without a
  /// child of this process, because another program may own it by now.
  void send(int signal) const {
    for (const pid_t group : groups_) {
      siginfo_t about{};
      const auto id = static_cast<id_t>(group);
      if (::waitid(P_PGID, id, &about, WEXITED | WNOHANG | WNOWAIT) == 0)
        ::kill(-group, signal);
    }
  }

  /// Reaps the orphans that this process inherited, until the child ends.
  siginfo_t ended() {
    for (;;) {
      siginfo_t about{};
      ::waitid(P_ALL, 0, &about, WEXITED | WNOHANG | WNOWAIT);
      if (about.si_pid == 0 || about.si_pid == child_)
        return about;
      ::waitpid(about.si_pid, nullptr, WNOHANG);
      if (about.si_pid == starter_) {
        lose_starter(about);
        ::kill(child_, SIGKILL);
      }
    }
  }

  /// The nodes are lost with it.
  void lose_starter(const siginfo_t& about) {
    std::fprintf(stderr, "troupe: the process that starts nodes %s\n", how_it_ended(about).c_str());
    starter_ = -1;
    lost_starter_ = true;
  }

  sigset_t signals_{}, before_{};
  int pipe_[2] = {-1, -1};
  pid_t child_ = -1;
  pid_t starter_ = -1;
  int socket_ = -1; // connects to the starter
  bool lost_starter_ = false;
  std::vector<pid_t> groups_; // process groups of the children whose descendants may be alive
  bool stopped_ = false;
  const pid_t parent_ = ::getppid();
  bool parent_ended_ = false;
};

} // namespace

bool HeadLife::goes_on() const {
  return takes_over() || (!run.empty() && !complete_checkpoints(run).empty());
}

bool HeadLife::takes_over() const {
  std::error_code error;
  return restarts > 0 && !run.empty()
         && std::filesystem::exists(actors::head_record_file(run), error);
}

std::string HeadLife::note() const {
  if (restarts == 0)
    return {};
  return "the previous head " + end + "; restart " + std::to_string(restarts)
         + (takes_over()  ? " looks for its processes"
            : goes_on()   ? " continues from its checkpoint"
            : run.empty() ? " starts the run"
                          : " starts a new run: " + run.string() + " has no complete checkpoint");
}

void HeadLife::begin(const std::filesystem::path& folder, int allowed_restarts, double minutes,
                     double patience) const {
  if (watch < 0)
    return;
  std::ostringstream out;
  out << allowed_restarts << ' ' << minutes << ' ' << patience << ' '
      << std::filesystem::absolute(folder).string() << '\0';
  const std::string text = out.str();
  if (::write(watch, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("cannot pass the run's folder to the process that watches the head: "
                             + std::string(std::strerror(errno)));
}

int watch_head(const std::function<int(const HeadLife&)>& head,
               const std::function<void(int)>& starter) {
  if (!has_one_thread())
    return head({});
  HeadWatch watch;
  HeadLife life;
  actors::RestartBudget deaths;
  std::optional<HeadBeginning> said;
  const auto give_up = [&](const std::string& text) {
    watch.clear_remains();
    return std::runtime_error(text);
  };
  for (life.restarts = 0;;) {
    watch.start_starter(starter);
    if (!watch.start()) {
      life.watch = watch.descriptor();
      life.keeper = ::getppid();
      life.starter = watch.socket();
      return head(life);
    }
    const siginfo_t about = watch.wait();
    if (about.si_code == CLD_EXITED) {
      watch.clear_remains();
      return about.si_status;
    }
    life.end = how_it_ended(about);
    const std::string died = "the head " + life.end;
    if (auto newest = watch.beginning())
      said = std::move(newest);
    if (!said)
      throw give_up(died + " before the run began");
    life.run = said->run;
    const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    const bool allowed = deaths.die(now, said->limits);
    const std::string allowance = deaths.words(said->limits);
    if (!allowed)
      throw give_up(died + ", " + allowance + "; `troupe resume` continues from "
                    + life.run.string());
    ++life.restarts;
    if (life.takes_over() && watch.has_lost_starter()) { // nothing is left to take over
      actors::remove_head_record(life.run);
    }
    if (!life.takes_over())
      watch.clear_remains();
    std::fprintf(stderr, "troupe: %s, %s; restarting it\n", died.c_str(), allowance.c_str());
    const std::chrono::duration<double> delay(
        life.takes_over() ? deaths.delay_seconds(kShareOfPatience * said->patience)
                          : deaths.delay_seconds());
    if (!watch.sleep_for(std::chrono::duration_cast<Clock::duration>(delay)))
      throw give_up(died + ", and the run was stopped meanwhile; `troupe resume` continues from "
                    + life.run.string());
  }
}

const int kParentEnded = SIGUSR1;

namespace {

// Used by the signal handler.
pid_t first_parent = 0, later_parent = 0;
char later_output[4096] = {};

void on_parent_ended(int) {
  const pid_t parent = ::getppid();
  if (parent == first_parent)
    return; // one of the parent's threads ended, not the parent
  if (parent != later_parent)
    ::_exit(1);
  const int before = errno;
  const int file = ::open(later_output, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file >= 0) {
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  errno = before;
}

} // namespace

void outlive_head(int keeper, const std::filesystem::path& log) {
  first_parent = ::getppid();
  later_parent = keeper;
  std::snprintf(later_output, sizeof later_output, "%s", log.c_str());
  ::signal(SIGPIPE, SIG_IGN); // until then, its output has no reader
  struct sigaction action {};
  action.sa_handler = on_parent_ended;
  action.sa_flags = SA_RESTART;
  ::sigaction(kParentEnded, &action, nullptr);
}

} // namespace troupe::experiments::commands
