#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "learner/acting/policy.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Wraps a policy and always plays its best actions instead of exploring. If all components of the
/// action are choices, the best action has probability 1.
class BestActions : public Policy {
public:
  BestActions(std::unique_ptr<Policy> policy, const replay::TransitionSpec& transitions);

  std::int64_t parameter_count() const override { return policy_->parameter_count(); }
  std::int64_t state_size() const override { return policy_->state_size(); }
  void load(std::span<const float> parameters) override { policy_->load(parameters); }
  using Policy::act;
  void act(const Observations& observations, std::span<float> actions) override {
    policy_->act(observations, actions);
  }
  void follow(const Observations& observations, std::span<const float> actions) override {
    policy_->follow(observations, actions);
  }
  bool has_density() const override { return choices_; }
  void log_probability(const Observations& observations, const Exploration& exploration,
                       std::span<const float> actions, std::span<double> out) override;

private:
  std::unique_ptr<Policy> policy_;
  bool choices_; // whether all components of the action are choices
};

} // namespace troupe::learner
