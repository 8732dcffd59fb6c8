#include "tests/doctest_torch.hpp"

#include <google/protobuf/descriptor.h>

#include "learner/agents/learners/parameter_group.hpp"
#include "learner/nn/kernels/precision.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/small_agent.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

constexpr std::int64_t kRows = 128;

/// The products are large enough for bfloat16, and the targets are updated within the test.
AgentPtr wide_agent(const AgentKind& kind, const std::string& precision) {
  const std::string more =
      kind.name == "mrq"
          ? "encoder_layers: 160 state_features: 160 action_features: 40 pair_layers: 160 "
            "pair_features: 160 period: 2 horizon: 3 n_step: 2 "
          : "target_update: 0.1 ";
  return small_agent(kind, more
                               + "policy_layers: [160, 144] critic_layers: [160, 144] precision: \""
                               + precision + "\"");
}

} // namespace

TEST_CASE("Learning with rounded products stays close to float32 and continues from a checkpoint") {
  int agents = 0;
  for (const AgentKind& kind : agent_kinds())
    for (const auto& [name, tolerance] :
         {std::pair{std::string("bfloat16"), 0.05}, {"bfloat16x3", 3e-4}}) {
      CAPTURE(kind.name);
      CAPTURE(name);
      if (kind.options->FindFieldByName("critic_layers") == nullptr)
        continue;
      ++agents;
      const bool rounds = choose_rounding(name, at::kCPU) != Rounding::none;
      const auto spec = small_transitions(kind);
      const auto learner = [&](const std::string& precision, ReplicaContext& context) {
        auto replica = wide_agent(kind, precision)->make_replica(spec);
        replica->build(context);
        return replica;
      };
      ReplicaContext context(nullptr, 3), other(nullptr, 3), third(nullptr, 3);
      const auto rounded = learner(name, context), exact = learner("float32", other);
      bool differs = false;
      for (std::uint64_t update = 0; update < 5; ++update) {
        const TensorMap batch = random_batch(spec, kRows, update);
        const Metrics ours = rounded->step_fn(context, batch);
        const Metrics theirs = exact->step_fn(other, batch);
        CHECK(ours.at("critic_loss")
              == doctest::Approx(theirs.at("critic_loss")).epsilon(tolerance));
        differs = differs || ours.at("critic_loss") != theirs.at("critic_loss");
      }
      CHECK(differs == rounds);
      const auto resumed = learner(name, third);
      resumed->load(copied(rounded->parameters()), copied(rounded->optimizer_state()));
      for (std::uint64_t update = 9; update < 12; ++update) {
        const TensorMap batch = random_batch(spec, kRows, update);
        CHECK(resumed->step_fn(third, batch) == rounded->step_fn(context, batch));
      }
      CHECK(at::equal(resumed->policy_parameters(), rounded->policy_parameters()));
    }
  CHECK(agents >= 10);
}

TEST_CASE("bfloat16 copies follow each step and each target average") {
  ReplicaContext context(nullptr, 1);
  ParameterGroup group;
  ParameterLayout layout;
  layout.add("weight", {50});
  group.declare(std::move(layout));
  const bool amx = use_amx(false); // whose products need no copies
  group.build(context, at::linspace(-1, 1, 50),
              {.learning_rate = 0.1, .rounding = Rounding::one_part});
  use_amx(amx);
  const auto follows = [&] {
    return at::equal(group.half().flat(), group.flat().to(at::kBFloat16))
           && at::equal(group.target_half().flat(), group.target().to(at::kBFloat16));
  };
  CHECK(follows());
  const at::Tensor before = group.half().flat().clone(),
                   target = group.target_half().flat().clone();
  group.gradient().fill_(1);
  group.step("loss", 0, 1);
  CHECK(follows());
  CHECK_FALSE(at::equal(before, group.half().flat()));
  CHECK(at::equal(target, group.target_half().flat()));
  group.average_target(0.5, 1);
  CHECK(follows());
  CHECK_FALSE(at::equal(target, group.target_half().flat()));
  group.flat().fill_(3);
  group.target().fill_(4);
  CHECK_FALSE(follows());
  group.refresh_halves();
  CHECK(follows());

  ParameterGroup exact;
  ParameterLayout same;
  same.add("weight", {50});
  exact.declare(std::move(same));
  exact.build(context, at::linspace(-1, 1, 50), {.learning_rate = 0.1});
  CHECK_FALSE(exact.half().defined());
  CHECK_FALSE(exact.target_half().defined());
}
