#include "tests/actor_fixture.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

#include "actors/protocol/messages.pb.h"
#include "actors/roles/evaluator_actor.hpp"
#include "tests/env/pool/counting_environment.hpp"
#include "tests/text.hpp"

namespace troupe::actors {
namespace {

/// Plays 0.5 in every step, so that an episode of four steps returns 2.
class HalfThrottle final : public learner::Policy {
public:
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float>) override {}
  void act(const learner::Observations&, std::span<float> actions) override {
    std::ranges::fill(actions, 0.5F);
  }
};

struct EvaluatorFixture : tests::ActorFixture {
  std::vector<std::uint64_t> seeds; // of the episodes begun
  std::set<std::size_t> failing;    // episodes whose second step throws, in the order of play

  EvaluatorActor spawn() {
    env::CountingHooks hooks;
    hooks.reset = [this](std::uint64_t seed) { seeds.push_back(seed); };
    hooks.step = [this](std::uint64_t, std::int64_t step) {
      if (step == 2 && failing.contains(seeds.size() - 1))
        throw std::runtime_error("the floor gave way");
    };
    const EvaluatorActor made = system.spawn(
        evaluator_actor,
        EvaluatorOptions{
            .environment = [hooks] { return std::make_unique<env::CountingEnvironment>(4, hooks); },
            .policy = [] { return std::make_unique<HalfThrottle>(); }});
    self->send(made, publish_atom_v,
               std::make_shared<const Parameters>(Parameters{.version = 7, .values = {}}));
    return made;
  }

  static ProtoBytes episodes(int count) {
    wire::EvaluationRequest request;
    request.set_episodes(count);
    request.set_seed(5);
    return encode(request);
  }
};

TEST_CASE_FIXTURE(EvaluatorFixture,
                  "An evaluation's episode that fails is played again with another seed") {
  failing = {1, 2, 3, 5};
  const EvaluatorActor evaluator = spawn();
  const auto result =
      decode<wire::EvaluationResult>(ask<ProtoBytes>(evaluator, evaluate_atom_v, episodes(3)));
  CHECK(std::vector<double>(result.returns().begin(), result.returns().end())
        == std::vector<double>{2, 2, 2});
  CHECK(result.version() == 7);
  CHECK(seeds.size() == 7);
  CHECK(std::set<std::uint64_t>(seeds.begin(), seeds.end()).size() == 7);
  self->send_exit(evaluator, caf::exit_reason::user_shutdown);
  deliver_all();
}

TEST_CASE_FIXTURE(EvaluatorFixture, "An evaluator quits with the error when four episodes in a row "
                                    "fail") {
  failing = {0, 1, 2, 3};
  const EvaluatorActor evaluator = spawn();
  self->monitor(evaluator);
  self->send(evaluator, evaluate_atom_v, episodes(1));
  deliver_all();
  caf::error reason;
  self->receive([&](const caf::down_msg& down) { reason = down.reason; });
  CHECK(has(explain(system, reason), "the floor gave way"));
  CHECK(seeds.size() == 4);
}

} // namespace
} // namespace troupe::actors
