#include "tests/doctest_torch.hpp"

#include "collectives/communicator.hpp"
#include "learner/agents/sac/sac.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/small_agent.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

TEST_CASE("Every agent's updates on a GPU give the parameters that the CPU gives") {
  if (collectives::cuda_device_count() == 0) {
    MESSAGE("skipped: " << collectives::nccl_unavailable_reason());
    return;
  }
  struct Setting {
    std::string name;
    AgentPtr agent;
    replay::TransitionSpec spec;
  };
  std::vector<Setting> settings;
  for (const AgentKind& kind : agent_kinds())
    settings.push_back(
        {kind.name, small_agent(kind, "precision: \"float32\""), small_transitions(kind)});
  settings.push_back({"sac, spherical",
                      make_sac_agent({.policy_layers = {16, 16},
                                      .critic_layers = {24, 24},
                                      .precision = "float32",
                                      .spherical = true}),
                      small_transitions(*find_agent("sac"), "spherical: true")});
  for (const auto& [name, agent, spec] : settings) {
    CAPTURE(name);
    ReplicaContext cpu(nullptr, 3), gpu(nullptr, 3, at::Device(at::kCUDA, 0));
    const auto here = agent->make_replica(spec);
    const auto there = agent->make_replica(spec);
    here->build(cpu);
    there->build(gpu);
    for (std::uint64_t i = 0; i < 7; ++i) {
      const TensorMap batch = random_batch(spec, 16, 10 + i);
      here->step_fn(cpu, batch);
      there->step_fn(gpu, batch);
    }
    const TensorMap expected = here->parameters();
    for (const auto& [parameter, tensor] : there->parameters()) {
      CAPTURE(parameter);
      CHECK(at::allclose(tensor.cpu(), expected.at(parameter), 5e-3, 1e-3));
    }
    CHECK(there->policy_parameters().is_cpu());
    // The state saved on one device continues on the other.
    here->load(there->parameters(), there->optimizer_state());
    here->step_fn(cpu, random_batch(spec, 16, 99));
  }
}
