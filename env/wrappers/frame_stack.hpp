#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Stacks the last `count` frames of every observation array, oldest first along its first axis. At
/// the start of an episode the first frame fills the whole stack. If there are pictures, only they
/// are stacked, because states beside them contain velocities. Throws std::invalid_argument unless
/// 1 <= count <= 64 and all stacked arrays have at least one axis. step() copies frames and does
/// not allocate.
class FrameStack final : public Wrapper {
public:
  FrameStack(std::unique_ptr<Environment> inner, int count);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;

private:
  struct Part { // one array: its place in a frame and in the stack
    std::size_t bytes;
    std::size_t from;
    std::size_t to;
    std::size_t frames; // 1: not stacked
  };
  void keep_newest();

  std::size_t count_;
  std::vector<Part> parts_;
  std::vector<std::byte> frame_; // the newest, from the inner environment
  std::vector<std::byte> stack_; // after the last step, in the order of the observation
};

} // namespace troupe::env
