#pragma once

#include "env/checks.hpp"
#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// A wrapper that makes its observation from the inner one.
class ObservationWrapper : public Wrapper {
public:
  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) final {
    check_observation_buffer(spec_, observation);
    const TimeStep result = inner().reset(seed, inner_observation_);
    write(observation);
    return result;
  }
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) final {
    check_observation_buffer(spec_, observation);
    const TimeStep result = inner().step(action, inner_observation_);
    write(observation);
    return result;
  }

protected:
  explicit ObservationWrapper(std::unique_ptr<Environment> wrapped)
      : Wrapper(std::move(wrapped)), inner_observation_(spec_.observation_bytes()) {}

  const std::byte* inner_array(std::size_t index) const { // of the present inner observation
    return inner_observation_.data() + inner_spec().observation_offset(index);
  }

private:
  virtual void write(std::span<std::byte> observation) = 0;

  std::vector<std::byte> inner_observation_;
};

} // namespace troupe::env
