#pragma once
// Ranks as processes of their own, which a test may kill or freeze.

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/socket.hpp"

namespace troupe::collectives {

/// A rank_program, killed (-9) with this object at the latest.
class RankProcess {
public:
  explicit RankProcess(std::vector<std::string> words) {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw std::runtime_error("pipe failed");
    std::string program = TROUPE_BINARY_DIR "/tests/collectives/rank_program";
    std::vector<char*> arguments{program.data()};
    for (auto& word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const int error =
        posix_spawn(&id_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    out_ = Socket(ends[0]);
    if (error != 0)
      throw std::runtime_error("cannot start " + program);
  }
  RankProcess(RankProcess&& other) noexcept
      : id_(std::exchange(other.id_, -1)), out_(std::move(other.out_)) {}
  RankProcess& operator=(RankProcess&&) = delete;
  ~RankProcess() {
    if (id_ > 0) {
      signal(SIGKILL);
      exit_status();
    }
  }

  void signal(int number) const { ::kill(id_, number); }

  /// Its next line; throws when none comes for a minute, "" when it has ended.
  std::string line() const {
    std::string text;
    for (char c = 0;; text += c) {
      pollfd entry{out_.fd(), POLLIN, 0};
      if (poll(&entry, 1, 60'000) <= 0)
        throw std::runtime_error("a rank says nothing for a minute");
      if (read(out_.fd(), &c, 1) != 1 || c == '\n')
        return text;
    }
  }

  /// As waitpid() has it, once it has ended.
  int exit_status() {
    int status = 0;
    waitpid(std::exchange(id_, -1), &status, 0);
    return status;
  }

private:
  pid_t id_ = -1;
  Socket out_;
};

} // namespace troupe::collectives
