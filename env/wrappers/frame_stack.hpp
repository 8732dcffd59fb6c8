#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// The last `count` frames of the (single) observation in one array, oldest first, along its first
/// axis; at the start of an episode the first frame fills them all. 1 <= count <= 64, else
/// std::invalid_argument. step() copies frames and does not allocate.
class FrameStack final : public Wrapper {
public:
  FrameStack(std::unique_ptr<Environment> inner, int count);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;

private:
  std::span<std::byte> newest(std::span<std::byte> stack) const;

  std::size_t frame_bytes_;
  std::vector<std::byte> stack_; // of the last step, oldest first
};

} // namespace troupe::env
