#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "replay/spec.hpp"
#include "replay/table.hpp"
#include "replay/writer.hpp"

namespace troupe::replay {

/// What the shards of the fault tests store: a state says which item it is of.
inline TransitionSpec process_spec() {
  return {.frame = {"state", env::ElementType::float32, {4}}, .action_size = 1};
}
inline const TableConfig kProcessConfig{.max_items = 10'000'000,
                                        .sampler = {.kind = SelectorKind::prioritized},
                                        .limiter = {.kind = LimiterKind::minimum_size}};

/// 4 MiB a frame, all of one number.
inline TransitionSpec large_spec() {
  return {.frame = {"state", env::ElementType::float32, {1 << 20}}, .action_size = 1};
}
inline void fill_large(TransitionWriter& writer, float number) {
  const std::span<std::byte> frame = writer.next_frame();
  const std::vector<float> values(frame.size() / sizeof(float), number);
  std::memcpy(frame.data(), values.data(), frame.size());
  if (number == 0)
    writer.begin();
  else
    writer.append(std::array{0.0F}, number, 1, false);
}

/// A replay_process of its own, killed (-9) with this object at the latest.
class Process {
public:
  explicit Process(std::vector<std::string> arguments) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe(ends.data()) != 0)
      throw std::runtime_error("pipe failed");
    std::string program = TROUPE_BINARY_DIR "/tests/replay/replay_process";
    std::vector<char*> given{program.data()};
    for (std::string& argument : arguments)
      given.push_back(argument.data());
    given.push_back(nullptr);
    id_ = ::fork();
    if (id_ == 0) { // nothing but calls that are safe beside other threads
      ::dup2(ends[1], STDOUT_FILENO);
      ::execv(given[0], given.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    out_ = ends[0];
  }
  ~Process() {
    kill();
    ::close(out_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Its next line; "" when it has ended.
  std::string line() const {
    std::string text;
    for (char c = 0; ::read(out_, &c, 1) == 1 && c != '\n';)
      text += c;
    return text;
  }
  void kill() {
    if (id_ > 0) {
      ::kill(id_, SIGKILL);
      ::waitpid(id_, nullptr, 0);
    }
    id_ = -1;
  }

private:
  pid_t id_ = -1;
  int out_ = -1;
};

} // namespace troupe::replay
