#include "experiments/commands/running/head_watch.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

#include <doctest/doctest.h>

#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments::commands;

namespace {

constexpr int kPatience = 60'000; // milliseconds
constexpr int kUnwatched = 99;
constexpr int kNoAnswer = 98;

bool answers(int starter, pid_t word) {
  pollfd ready{.fd = starter, .events = POLLIN, .revents = 0};
  return ::send(starter, &word, sizeof word, MSG_NOSIGNAL) == sizeof word
         && ::poll(&ready, 1, kPatience) == 1
         && ::recv(starter, &word, sizeof word, 0) == sizeof word;
}

/// Answers every word. If it is the number of a process, kills itself just after that process ends.
void start_nodes(int socket) {
  for (pid_t word = 0; ::recv(socket, &word, sizeof word, 0) == sizeof word;) {
    pollfd ended{.fd = -1, .events = POLLIN, .revents = 0};
    if (word > 0)
      ended.fd = static_cast<int>(::syscall(SYS_pidfd_open, word, 0));
    ::send(socket, &word, sizeof word, MSG_NOSIGNAL);
    if (word > 0 && ::poll(&ended, 1, kPatience) == 1)
      ::raise(SIGKILL);
  }
}

} // namespace

TEST_CASE("A head that dies together with the process that starts nodes is restarted once") {
  const pid_t test = ::getpid();
  for (int round = 0; round < 5; ++round) { // which death is seen first differs
    const TemporaryFolder run;
    const auto record = run / "checkpoints" / "head.state"; // of what the head started
    std::filesystem::create_directories(record.parent_path());
    const int code = watch_head(
        [&](const HeadLife& life) {
          if (life.watch < 0)
            return kUnwatched;
          life.begin(run.path(), 5, 10, 8);
          if (life.restarts > 0)
            return answers(life.starter, 0) ? life.restarts : kNoAnswer;
          std::ofstream(record) << "a record";
          if (!answers(life.starter, ::getpid()))
            return kNoAnswer;
          return ::raise(SIGKILL);
        },
        start_nodes);
    if (::getpid() != test)
      ::_exit(code);
    if (code == kUnwatched) {
      MESSAGE("skipped: this process has several threads, so that it cannot be forked");
      return;
    }
    CHECK(code == 1);
    CHECK_FALSE(std::filesystem::exists(record)); // nothing was left to take over
  }
}
