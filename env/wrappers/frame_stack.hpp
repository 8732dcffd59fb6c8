#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// The last `count` frames of every observation array, oldest first along its first axis; at the
/// start of an episode the first frame fills them all. Where there are pictures, they alone are
/// stacked: states beside them have velocities of their own. 1 <= count <= 64 and arrays with at
/// least one axis, else std::invalid_argument. step() copies frames and does not allocate.
class FrameStack final : public Wrapper {
public:
  FrameStack(std::unique_ptr<Environment> inner, int count);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;

private:
  struct Part { // one array: in a frame, and in the stack
    std::size_t bytes;
    std::size_t from;
    std::size_t to;
    std::size_t frames; // 1: not stacked
  };
  void keep_newest();

  std::size_t count_;
  std::vector<Part> parts_;
  std::vector<std::byte> frame_; // the newest, as the inner environment gives it
  std::vector<std::byte> stack_; // of the last step, in the order of the observation
};

} // namespace troupe::env
