#pragma once

#include <filesystem>
#include <functional>

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// An episode as the inner environment plays it, before outer wrappers change its rewards.
struct EpisodeSummary {
  std::uint64_t seed = 0;
  double episode_return = 0; // undiscounted
  std::int64_t steps = 0;    // of the inner environment
  double seconds = 0;        // of simulated time
  bool terminated = false;   // by the task; false: still running, or cut off by a time limit
  bool operator==(const EpisodeSummary&) const = default;
};

using EpisodeFunction = std::function<void(const EpisodeSummary&)>;

/// Counts steps and sums rewards. Calls `on_end` within the step() that ends an episode. The
/// running sums are part of the saved state.
class EpisodeStatistics final : public Wrapper {
public:
  EpisodeStatistics(std::unique_ptr<Environment> inner, EpisodeFunction on_end);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;

private:
  EpisodeFunction on_end_;
  EpisodeSummary episode_; // the present one
};

/// Returns a function that appends one line of JSON per episode to `path`. Each line is one write,
/// so that any number of environments and processes may share the file. Throws std::runtime_error
/// naming the file if it cannot be opened; the returned function throws it if too many lines wait
/// for room on the disk.
EpisodeFunction append_to_log(const std::filesystem::path& path, std::string environment);

} // namespace troupe::env
