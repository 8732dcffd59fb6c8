#include "learner/agents/impala/impala.hpp"

#include "tests/learner/agents/parts/actor_critic_fixture.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

ImpalaConfig small_impala() {
  return {.layers = {24, 20},
          .rollout = kRollout,
          .batch_size = kLanes,
          .learning_rate = 3e-3,
          .entropy = {.start = 0.001}};
}

} // namespace

TEST_CASE("IMPALA: a bandit's best action is learned from the policy's own samples") {
  for (const std::int64_t choices : {0, 4}) {
    CAPTURE(choices);
    CHECK(bandit_error(make_impala_agent(small_impala()), choices, 600) < 0.15);
  }
}

TEST_CASE("IMPALA: importance weights are at most most_weight") {
  Learning learning(make_impala_agent(small_impala()), 4);
  TensorMap batch = learning.batch(1);
  batch["first"].zero_();
  batch[kLogProbability].fill_(-20); // nearly impossible for the acting policy
  CHECK(learning.replica->step_fn(learning.context, batch).at("weight") == doctest::Approx(1));
  batch[kLogProbability].fill_(0); // certain for the acting policy, one in four for the learner's
  const double weight = learning.replica->step_fn(learning.context, batch).at("weight");
  CHECK(weight > 0.15);
  CHECK(weight < 0.35);
}

TEST_CASE("IMPALA: steps that follow no action change nothing") {
  Learning learning(make_impala_agent(small_impala()), 0);
  Learning other(make_impala_agent(small_impala()), 0);
  TensorMap batch = learning.batch(1);
  learning.replica->step_fn(learning.context, batch);
  const at::Tensor none = batch["first"].narrow(1, 1, kRollout).ne(0);
  batch["reward"] = batch["reward"].masked_fill(none, 99);
  batch["action"] = batch["action"].masked_fill(none.unsqueeze(2), 0.7);
  other.replica->step_fn(other.context, batch);
  CHECK(equal(copied(learning.replica->parameters()), copied(other.replica->parameters())));
}

TEST_CASE("IMPALA: the schedule of the entropy counts rollouts that several updates use once") {
  const EntropyConfig falling{.start = 1, .end = 0.25, .steps = 2 * kLanes * kRollout};
  const auto agent = [](const EntropyConfig& entropy) {
    return make_impala_agent({.layers = {12},
                              .rollout = kRollout,
                              .batch_size = kLanes,
                              .item_uses = 2,
                              .entropy = entropy});
  };
  /// The parameters after `updates` updates with the schedule and one with `entropy`.
  const auto learn = [&](int updates, const EntropyConfig& entropy) {
    Learning first(agent(falling), 0);
    for (int i = 0; i < updates; ++i)
      first.replica->step_fn(first.context, first.batch(static_cast<std::uint64_t>(i / 2)));
    Learning second(agent(entropy), 0);
    second.replica->load(copied(first.replica->parameters()),
                         copied(first.replica->optimizer_state()));
    second.replica->step_fn(second.context, second.batch(9));
    return copied(second.replica->parameters());
  };
  const double weights[] = {1, 1, 0.625, 0.625, 0.25, 0.25};
  for (int updates = 0; updates < 6; ++updates) {
    CAPTURE(updates);
    const TensorMap scheduled = learn(updates, falling);
    CHECK(equal(scheduled, learn(updates, {.start = weights[updates]})));
    CHECK_FALSE(equal(scheduled, learn(updates, {.start = 0.5})));
  }
}
