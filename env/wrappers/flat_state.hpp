#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Concatenates all observations, which must be float64 or float32, into one array "state" float32
/// [n]. A number that is not finite or exceeds the range of float32 causes a std::runtime_error
/// naming its array.
class FlatState final : public Wrapper {
public:
  explicit FlatState(std::unique_ptr<Environment> inner);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  void flatten(std::span<std::byte> observation) const;

  std::vector<std::byte> scratch_;
};

} // namespace troupe::env
