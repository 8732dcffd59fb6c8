// Training options that every agent supports.
#include "learner/agents/training_config.hpp"

#include "tests/doctest_torch.hpp"

#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/agents/small_agent.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

LearningRateSchedule schedule(const std::string& kind) {
  TrainingConfig config;
  config.learning_rate = {
      .schedule = kind, .updates = 10, .final_fraction = 0, .warmup_updates = 2};
  return config.learning_rate.made();
}

TensorMap batch_of(const AgentKind& kind, int update) {
  return random_batch({small_transitions(kind)}, kBatch, static_cast<std::uint64_t>(update));
}

/// The parameters that the optimizers update.
TensorMap stepped(Replica& replica) {
  const TensorMap state = replica.optimizer_state();
  TensorMap out;
  for (const auto& [name, tensor] : replica.parameters())
    if (state.contains("adam.exp_avg." + name))
      out[name] = tensor.clone();
  return out;
}

} // namespace

TEST_CASE("Learning rates: every agent's parameters stay at a rate of 0 and move otherwise") {
  at::set_num_threads(1);
  for (const AgentKind& kind : agent_kinds())
    for (const char* shape : {"linear", "cosine"}) {
      CAPTURE(kind.name);
      CAPTURE(shape);
      const AgentPtr agent = small_agent(kind, kind.name == "ppo" ? "epochs: 1" : "");
      ReplicaContext context(nullptr, 4);
      context.set_learning_rates(schedule(shape));
      const auto replica = agent->make_replica(small_transitions(kind));
      replica->build(context);
      CHECK(context.learning_rates_read());
      for (int i = 0; i < 12; ++i) {
        CAPTURE(i);
        const TensorMap before = stepped(*replica);
        replica->step_fn(context, batch_of(kind, i));
        CHECK(equal(before, stepped(*replica)) == (i == 0 || i >= 10));
      }
    }
}

TEST_CASE("Learning rates: a resumed learner continues bit for bit at the scheduled rate") {
  at::set_num_threads(1);
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const AgentPtr agent = small_agent(kind);
    const auto learn = [&](int restart_at, const std::string& shape) {
      ReplicaContext context(nullptr, 4);
      context.set_learning_rates(schedule(shape));
      auto replica = agent->make_replica(small_transitions(kind));
      replica->build(context);
      for (int i = 0; i < 9; ++i) {
        if (i == restart_at) {
          const TensorMap parameters = copied(replica->parameters());
          const TensorMap state = copied(replica->optimizer_state());
          ReplicaContext other(nullptr, 99);
          other.set_learning_rates(schedule(shape));
          replica = agent->make_replica(small_transitions(kind));
          replica->build(other);
          replica->load(parameters, state);
        }
        replica->step_fn(context, batch_of(kind, i));
      }
      return copied(replica->parameters());
    };
    const TensorMap whole = learn(-1, "cosine");
    CHECK(equal(whole, learn(5, "cosine")));
    CHECK_FALSE(equal(whole, learn(-1, "linear")));
  }
}

TEST_CASE("Learning rates: contradictory keys are named") {
  TrainingConfig config;
  CHECK(config.problems().empty());
  CHECK_FALSE(config.learning_rate.made().changes());
  const auto problem = [&](const TrainingConfig::LearningRate& rate) {
    config.learning_rate = rate;
    const auto found = config.problems();
    return found.empty() ? std::string() : found[0].key + " " + found[0].text;
  };
  CHECK(problem({.schedule = "cosine", .updates = 5, .warmup_updates = 4}).empty());
  CHECK(problem({.warmup_updates = 4}).empty());
  CHECK(problem({.schedule = "cosine", .updates = 4, .warmup_updates = 4})
            .find("learning_rate.updates is 4; with learner.learning_rate.schedule \"cosine\" it "
                  "must be more than learner.learning_rate.warmup_updates, 4")
        == 0);
  CHECK(problem({.updates = 4}).find("learning_rate.updates is given, but") == 0);
  CHECK(problem({.final_fraction = 0.1}).find("learning_rate.final_fraction is given") == 0);
}
