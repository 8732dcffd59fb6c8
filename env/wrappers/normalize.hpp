#pragma once

#include <optional>

#include "env/wrappers/observation_statistics.hpp"
#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

struct NormalizeOptions {
  double clip = 10;   // normalised numbers are clipped to ±clip; must be above 0
  bool update = true; // update the statistics with every observation; false: frozen
  std::optional<ObservationStatistics> statistics{}; // initial statistics
};

/// Normalises floating-point observations to (x - mean) / sqrt(variance + 1e-8), clipped; other
/// arrays are unchanged. While the statistics are updated they belong to the environment, not to
/// the episode: an observation then depends on earlier ones, and two environments differ. For
/// training, use frozen statistics from a file (write_statistics()). The statistics are part of the
/// saved state, and of the lasting state unless they are frozen. step() does not allocate. Throws
/// std::invalid_argument if there is nothing to normalise or if the statistics are for other
/// arrays.
class Normalize final : public Wrapper {
public:
  Normalize(std::unique_ptr<Environment> inner, NormalizeOptions options);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;
  void save_lasting_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_lasting_state(std::span<const std::byte> in) override;

  const ObservationStatistics& statistics() const { return statistics_; }

private:
  template <typename T>
  void normalize(std::size_t array, std::byte* numbers);
  void apply(std::span<std::byte> observation);
  void save_statistics(std::vector<std::byte>& out) const;
  ObservationStatistics read_saved_statistics(std::span<const std::byte>& in) const;

  double clip_;
  bool update_;
  ObservationStatistics statistics_;
  std::vector<std::size_t> arrays_; // of the spec, in the order of the statistics
};

} // namespace troupe::env
