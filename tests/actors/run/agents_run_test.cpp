// Runs of every agent of the list: the actors know none of them.
#include "tests/actors/small_run.hpp"
#include "tests/learner/agents/small_agent.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::actors;

namespace {

RunConfig small_with(const learner::AgentKind& kind, std::int64_t environment_steps) {
  RunConfig config = small(environment_steps);
  config.agent = learner::small_agent(kind);
  config.replay.n_step = 1;
  if (kind.actions == learner::ActionKind::choice)
    config.environment.task = "CartPole-v1";
  return config;
}

} // namespace

TEST_CASE("every agent: a deterministic run that was resumed equals one that was not") {
  for (const learner::AgentKind& kind : learner::agent_kinds()) {
    CAPTURE(kind.name);
    const TemporaryFolder whole, parts;
    const RunResult a = play(small_with(kind, 2400), whole.path());
    REQUIRE(a.error == "");
    const RunResult half = play(small_with(kind, 1600), parts.path());
    REQUIRE(half.error == "");
    CHECK(half.progress.updates > 10);
    CHECK(half.progress.updates < a.progress.updates);
    const RunResult b = play(small_with(kind, 2400), parts.path(), half.checkpoint);
    REQUIRE(b.error == "");
    CHECK(a.progress.updates == b.progress.updates);
    check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
    check_equal(a.checkpoint, b.checkpoint, "optimizer.safetensors");
  }
}

TEST_CASE("every agent: two replicas, priorities and a parameter server") {
  for (const learner::AgentKind& kind : learner::agent_kinds()) {
    CAPTURE(kind.name);
    for (const char* strategy : {"multi_worker", "parameter_server"}) {
      CAPTURE(strategy);
      const TemporaryFolder folder;
      RunConfig config = small_with(kind, 1600);
      config.deterministic = false;
      config.learner.replicas = 2;
      config.learner.strategy = strategy;
      config.replay.sampler = "prioritized";
      const RunResult result = play(config, folder.path());
      REQUIRE(result.error == "");
      CHECK(result.progress.updates > 10);
      CHECK(result.progress.priorities > 0);
    }
  }
}
