#pragma once
// An agent that learns from rollouts, its acting policy, and a bandit.

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "learner/agents/parts/actor_critic.hpp"
#include "learner/agents/parts/advantages.hpp"
#include "tests/doctest_torch.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

namespace troupe::tests {

inline constexpr std::int64_t kLanes = 32;
inline constexpr std::int64_t kRollout = 4;

/// States of 5 numbers, with one choice of `choices` or two continuous numbers as the action.
inline replay::TransitionSpec rollouts(const learner::Agent& agent, std::int64_t choices) {
  replay::TransitionSpec spec{.frame = {"state", env::ElementType::float32, {5}}, .action_size = 2};
  if (choices > 0) {
    spec.action_size = 1;
    spec.action_choices = {choices};
  }
  return learner::stored_by(agent, spec);
}

/// A learner, and a policy that acts with its parameters.
struct Learning {
  Learning(const learner::AgentPtr& agent, std::int64_t choices)
      : spec(rollouts(*agent, choices)),
        replica(agent->make_replica(spec)),
        policy(agent->make_policy(spec)) {
    at::set_num_threads(1); // tests run in parallel
    replica->build(context);
    publish();
  }
  void publish() {
    const at::Tensor flat = replica->policy_parameters();
    policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  }
  /// Samples actions [n, action size] and the logarithms of their probabilities for states [n, 5].
  std::pair<at::Tensor, at::Tensor> sampled(const at::Tensor& states) {
    const std::int64_t n = states.size(0);
    at::Tensor actions = at::empty({n, spec.action_size});
    at::Tensor logarithms = at::empty({n});
    std::vector<const std::byte*> frames;
    std::vector<std::byte*> extras;
    for (std::int64_t i = 0; i < n; ++i) {
      frames.push_back(bytes_of(states).data() + static_cast<std::size_t>(i) * 5 * sizeof(float));
      extras.push_back(reinterpret_cast<std::byte*>(logarithms.mutable_data_ptr<float>() + i));
    }
    const std::vector<learner::ActingRandom*> randoms(static_cast<std::size_t>(n), &random);
    policy->explore({frames, 5 * sizeof(float), n}, {.random = randoms, .extras = extras},
                    {actions.mutable_data_ptr<float>(), static_cast<std::size_t>(actions.numel())});
    return {actions, logarithms};
  }
  learner::TensorMap batch(std::uint64_t seed) { return random_batch({spec}, kLanes, seed); }

  replay::TransitionSpec spec;
  learner::ReplicaContext context{nullptr, 1};
  std::unique_ptr<learner::Replica> replica;
  std::unique_ptr<learner::Policy> policy;
  learner::ActingRandom random{std::mt19937_64(7)};
};

/// Makes `updates` updates on samples of its own policy, in one-step episodes whose best action is
/// 0.3, or choice 2. Returns how far the final policy is from that.
inline double bandit_error(const learner::AgentPtr& agent, std::int64_t choices, int updates) {
  Learning learning(agent, choices);
  for (int update = 0; update < updates; ++update) {
    learner::TensorMap batch = learning.batch(static_cast<std::uint64_t>(update));
    const auto [actions, logarithms] =
        learning.sampled(batch["observation"].narrow(1, 0, kRollout).reshape({-1, 5}).contiguous());
    batch["first"].zero_();
    batch["discount"].zero_();
    batch["action"] = actions.view(batch["action"].sizes());
    batch[learner::kLogProbability] = logarithms.view({kLanes, kRollout});
    batch["reward"] = choices > 0 ? batch["action"].squeeze(2).eq(2).to(at::kFloat)
                                  : -(batch["action"] - 0.3).square().sum(2);
    learning.replica->step_fn(learning.context, batch);
    learning.publish();
  }
  at::Tensor actions = at::empty({20, learning.spec.action_size});
  learning.policy->act(
      bytes_of(uniform({20, 5}, 5)), 20,
      {actions.mutable_data_ptr<float>(), static_cast<std::size_t>(actions.numel())});
  return (actions - (choices > 0 ? 2 : 0.3)).square().mean().sqrt().item<double>();
}

} // namespace troupe::tests
