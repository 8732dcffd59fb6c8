#pragma once

#include "env/wrappers/observation_wrapper.hpp"

namespace troupe::env {

/// Concatenates all observations, which must be float64 or float32, into one array "state" float32
/// [n]. A number that is not finite or exceeds the range of float32 causes a std::runtime_error
/// naming its array.
class FlatState final : public ObservationWrapper {
public:
  explicit FlatState(std::unique_ptr<Environment> inner);

private:
  void write(std::span<std::byte> observation) override;
};

} // namespace troupe::env
