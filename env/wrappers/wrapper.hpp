#pragma once

#include <memory>
#include <utility>

#include "env/environment.hpp"

namespace troupe::env {

/// An environment around another. It forwards all calls; derived classes override some.
class Wrapper : public Environment {
public:
  explicit Wrapper(std::unique_ptr<Environment> inner)
      : spec_(inner->spec()), inner_(std::move(inner)) {}

  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    return inner_->reset(seed, observation);
  }
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    return inner_->step(action, observation);
  }
  void save_state(std::vector<std::byte>& out) const override { inner_->save_state(out); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    return inner_->load_state(in);
  }
  void save_lasting_state(std::vector<std::byte>& out) const override {
    inner_->save_lasting_state(out);
  }
  std::span<const std::byte> load_lasting_state(std::span<const std::byte> in) override {
    return inner_->load_lasting_state(in);
  }
  Physics* physics() override { return inner_->physics(); }

protected:
  Environment& inner() { return *inner_; }
  const EnvironmentSpec& inner_spec() const { return inner_->spec(); }

  EnvironmentSpec spec_; // the inner spec, which derived constructors change

private:
  std::unique_ptr<Environment> inner_;
};

} // namespace troupe::env
