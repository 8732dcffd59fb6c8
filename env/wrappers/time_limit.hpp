#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Ends an episode after `steps` steps of the inner environment. That step becomes the last one and
/// keeps its discount, so that the value of the following state still counts (truncation; a
/// termination on the same step keeps its 0). An earlier inner limit still applies. Throws
/// std::invalid_argument unless 1 <= steps <= 1e9, and if step() is called outside an episode.
class TimeLimit final : public Wrapper {
public:
  TimeLimit(std::unique_ptr<Environment> inner, std::int64_t steps);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;

private:
  std::int64_t limit_;
  std::int64_t left_ = 0; // steps until truncation; 0 outside an episode
};

} // namespace troupe::env
