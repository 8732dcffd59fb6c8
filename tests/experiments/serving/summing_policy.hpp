#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "experiments/serving/served_policy.hpp"

namespace troupe::experiments::serving {

/// Acts by the sum of all numbers of the observation, plus its recurrent state: the sum over the
/// previous steps.
class SummingPolicy : public learner::Policy {
public:
  SummingPolicy(std::size_t numbers, std::int64_t state) : numbers_(numbers), state_(state) {}
  std::int64_t parameter_count() const override { return 0; }
  std::int64_t state_size() const override { return state_; }
  void load(std::span<const float>) override {}
  void act(const learner::Observations& observations, std::span<float> actions) override {
    for (std::size_t row = 0; row < actions.size(); ++row) {
      std::vector<float> numbers(numbers_);
      std::memcpy(numbers.data(), observations.frames[row], numbers_ * sizeof(float));
      float sum = 0;
      for (const float number : numbers)
        sum += number;
      if (state_ > 0)
        sum = observations.state[row] += sum;
      actions[row] = sum;
    }
  }

private:
  std::size_t numbers_;
  std::int64_t state_;
};

/// A policy behind a contract with an observation "state" of two numbers and an action from -20 to
/// 20, ten times the output of the policy.
inline std::unique_ptr<ServedPolicy> served(std::unique_ptr<learner::Policy> policy,
                                            std::int64_t updates = 5, int history = 1,
                                            const char* name = "state",
                                            const std::vector<double>& mean = {}) {
  PolicyContract contract;
  contract.updates = updates;
  contract.history = history;
  contract.state_size = policy->state_size();
  contract.observations = {{.spec = {.name = name, .shape = {2}},
                            .elements = {},
                            .mean = mean,
                            .deviation = std::vector<double>(mean.size(), 1)}};
  contract.normalisation_clip = 1e38;
  contract.actions = {{.name = "force", .unit = "N", .minimum = -20, .maximum = 20}};
  contract.scales = {{.offset = 0, .gain = 10, .limit = 2}};
  env::EnvironmentSpec spec;
  spec.frame_stack = history;
  spec.observations = {{.name = name, .shape = {2 * history}}};
  return std::make_unique<ServedPolicy>(contract, spec, std::move(policy));
}

/// A SummingPolicy, served.
inline std::unique_ptr<ServedPolicy> summing(std::int64_t updates = 5, int history = 1,
                                             std::int64_t state = 0, const char* name = "state") {
  return served(std::make_unique<SummingPolicy>(2 * history, state), updates, history, name);
}

} // namespace troupe::experiments::serving
