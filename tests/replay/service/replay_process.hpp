#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "env/processes/child_process.hpp"
#include "replay/chunks/spec.hpp"
#include "replay/table/table.hpp"
#include "replay/writers/n_step_items.hpp"
#include "tests/folders.hpp"

namespace troupe::replay {

/// What the shards of the fault tests store. The state identifies its item.
inline TransitionSpec process_spec() {
  return {.frame = {"state", env::ElementType::float32, {4}}, .action_size = 1};
}
inline const TableConfig kProcessConfig{.max_items = 10'000'000,
                                        .sampler = {.kind = SelectorKind::prioritized},
                                        .limiter = {.kind = RateLimiterKind::minimum_size}};

/// Frames of 4 MiB that repeat one number.
inline TransitionSpec large_spec() {
  return {.frame = {"state", env::ElementType::float32, {1 << 20}}, .action_size = 1};
}
inline void fill_large(Writer& writer, float number) {
  const std::span<std::byte> frame = writer.next(kFrame);
  const std::vector<float> values(frame.size() / sizeof(float), number);
  std::memcpy(frame.data(), values.data(), frame.size());
  if (number == 0)
    begin_episode(writer);
  else
    append_step(writer, std::array{0.0F}, number, 1, false);
}

struct Process : ChildProcess {
  explicit Process(std::vector<std::string> arguments)
      : ChildProcess(in_build("tests/replay/replay_process"), std::move(arguments)) {}
};

} // namespace troupe::replay
