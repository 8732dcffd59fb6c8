#include "experiments/commands/cluster/rank_processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "env/processes/exec_words.hpp"
#include "env/processes/forked.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/launchers/how_it_ended.hpp"

namespace troupe::experiments::commands {

using launchers::close_if_open;

namespace {

/// Creates a pipe whose read end does not block.
void make_pipe(int& reading, int& writing) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error("cannot create a pipe; raise the limit of open files (ulimit -n)");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  reading = ends[0];
  writing = ends[1];
}

} // namespace

RankProcesses::~RankProcesses() {
  for (Rank& rank : ranks_) {
    if (rank.running) {
      ::kill(rank.process, SIGKILL);
      ::waitpid(rank.process, nullptr, 0);
    }
    close_if_open(rank.ended);
    close_if_open(rank.out.descriptor);
    close_if_open(rank.error.descriptor);
  }
}

void RankProcesses::start(int number, const Start& what) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  const bool piped = options_.output == RankOutput::all;
  const bool logged = options_.output == RankOutput::files;
  int out = -1;
  int error = -1;
  if (logged) {
    const auto log = options_.log_folder / ("rank" + std::to_string(number) + ".log");
    out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (out < 0)
      throw std::invalid_argument("cannot write " + log.string() + ": " + std::strerror(errno)
                                  + "; choose another --log-folder");
  } else if (piped) {
    make_pipe(rank.out.descriptor, out);
  } else if (number != 0) {
    out = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  }
  make_pipe(rank.error.descriptor, error);
  std::string prefix;
  if (piped || number != 0)
    prefix.append(1, '[').append(std::to_string(number)).append("] ");
  rank.out.to = stdout;
  rank.error.to = stderr;
  rank.out.prefix = rank.error.prefix = prefix;
  const int in = number == 0 ? -1 : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const auto words = exec_words(what.words);
  const auto environment = exec_words(what.environment);
  sigset_t none;
  ::sigemptyset(&none);
  rank.process = start_child(SIGKILL, [&] {
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (in >= 0)
      ::dup2(in, STDIN_FILENO);
    if (out >= 0)
      ::dup2(out, STDOUT_FILENO);
    ::dup2(error, STDERR_FILENO);
    ::execve(words[0], words.data(), environment.data());
    ::_exit(127);
  });
  const int failure = errno;
  for (int descriptor : {in, out, error})
    close_if_open(descriptor);
  if (rank.process < 0)
    throw std::runtime_error(std::string("cannot start a rank: ") + std::strerror(failure));
  rank.ended = watch_child(rank.process);
  rank.running = true;
}

void RankProcesses::show(Rank& rank, const Stream& stream, std::string_view line) {
  std::fprintf(stream.to, "%s%.*s\n", stream.prefix.c_str(), static_cast<int>(line.size()),
               line.data());
  if (&stream == &rank.error && line.find_first_not_of(" \t\r") != std::string_view::npos)
    rank.last_words = line;
}

/// Reads all available output; with `to_the_end`, also a last line without a newline.
void RankProcesses::drain(Rank& rank, Stream& stream, bool to_the_end) {
  const auto show = [&](std::string_view line) { RankProcesses::show(rank, stream, line); };
  stream.lines.read(stream.descriptor, show);
  if (to_the_end)
    stream.lines.finish(show);
  std::fflush(stream.to);
}

void RankProcesses::collect(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  siginfo_t about{};
  if (::waitid(P_PID, static_cast<id_t>(rank.process), &about, WEXITED) != 0)
    return;
  rank.running = false;
  drain(rank, rank.out, true);
  drain(rank, rank.error, true);
  const bool failed = about.si_code != CLD_EXITED || about.si_status != 0;
  if (failed && !cause_)
    cause_ = "rank " + std::to_string(number) + " of " + std::to_string(options_.ranks)
             + " (process " + std::to_string(rank.process) + ") " + how_it_ended(about)
             + (rank.last_words.empty() ? "" : ": " + rank.last_words);
}

void RankProcesses::signal_all(int signal) const {
  for (const Rank& rank : ranks_)
    if (rank.running)
      ::kill(rank.process, signal);
}

bool RankProcesses::any_running() const {
  for (const Rank& rank : ranks_)
    if (rank.running)
      return true;
  return false;
}

void RankProcesses::handle_signal() {
  const auto about = signals_.next();
  if (!about)
    return;
  if (stopped_by_ != 0) {
    aborted_ = true;
    signal_all(SIGKILL);
    return;
  }
  stopped_by_ = static_cast<int>(about->ssi_signo);
  if (about->ssi_code != SI_KERNEL) // the terminal has already sent it to all processes
    signal_all(stopped_by_);
}

/// Waits up to `limit` for events and handles them; false if there were none.
bool RankProcesses::wait(std::chrono::milliseconds limit) {
  std::vector<pollfd> watched{{signals_.descriptor(), POLLIN, 0}};
  for (const Rank& rank : ranks_) {
    watched.push_back({rank.running ? rank.ended : -1, POLLIN, 0});
    watched.push_back({rank.out.descriptor, POLLIN, 0});
    watched.push_back({rank.error.descriptor, POLLIN, 0});
  }
  if (::poll(watched.data(), watched.size(), static_cast<int>(limit.count())) <= 0)
    return false;
  if (watched[0].revents != 0)
    handle_signal();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (watched[2 + 3 * i].revents != 0)
      drain(ranks_[i], ranks_[i].out, false);
    if (watched[3 + 3 * i].revents != 0)
      drain(ranks_[i], ranks_[i].error, false);
  }
  // Look at killed processes first: they are the cause, and their peers' errors the consequence.
  for (const bool killed : {true, false})
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      siginfo_t about{};
      if (watched[1 + 3 * i].revents != 0 && ranks_[i].running
          && ::waitid(P_PID, static_cast<id_t>(ranks_[i].process), &about,
                      WEXITED | WNOWAIT | WNOHANG)
                 == 0
          && about.si_pid != 0 && (about.si_code != CLD_EXITED) == killed)
        collect(static_cast<int>(i));
    }
  return true;
}

int RankProcesses::run(const std::vector<Start>& starts) {
  using Clock = std::chrono::steady_clock;
  if (options_.output == RankOutput::files)
    std::filesystem::create_directories(options_.log_folder);
  ranks_.resize(starts.size());
  for (std::size_t rank = 0; rank < starts.size(); ++rank)
    start(static_cast<int>(rank), starts[rank]);

  int asked = 0; // 1: SIGTERM was sent; 2: SIGKILL was sent
  std::optional<Clock::time_point> limit;
  while (any_running()) {
    if (cause_ && !limit)
      limit = Clock::now() + options_.grace;
    constexpr std::chrono::milliseconds kLongest{60'000};
    const auto left =
        limit ? std::chrono::duration_cast<std::chrono::milliseconds>(*limit - Clock::now())
              : kLongest;
    if (left.count() > 0) {
      wait(left);
      continue;
    }
    signal_all(++asked == 1 ? SIGTERM : SIGKILL);
    limit = Clock::now() + options_.grace;
  }
  if (aborted_)
    return kAborted;
  if (cause_ && stopped_by_ != 0)
    throw std::runtime_error("stopped by signal " + std::to_string(stopped_by_) + " ("
                             + ::strsignal(stopped_by_) + ") before the program ended");
  if (cause_)
    throw std::runtime_error(*cause_);
  return kDone;
}

} // namespace troupe::experiments::commands
