#include "tests/doctest_torch.hpp"

#include "experiments/config/config.hpp"
#include "experiments/config/plan.hpp"
#include "learner/agents/d4pg/d4pg.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {
const fs::path kConfigs = in_source("experiments/configs");
}

TEST_CASE("Every bundled experiment is valid and shows how to run it") {
  const std::vector<fs::path> folders{kConfigs, kConfigs / "games", kConfigs / "gym",
                                      kConfigs / "recipes"};
  const auto names = config_names(folders);
  CHECK(names.size() >= 31);
  for (const std::string& name : names) {
    CAPTURE(name);
    const fs::path file = find_config(name, folders);
    const Experiment experiment = load_experiment(file);
    CHECK(experiment.name() == name);
    const std::string text = read_text(file);
    CHECK(text.starts_with("# "));
    CHECK(text.find("#   troupe train " + name + "\n") != std::string::npos); // how to run it
  }
}

TEST_CASE("A plan contains the values of its experiment") {
  const Experiment e =
      load_experiment(kConfigs / "quickstart.textproto",
                      {"seed=9", "learner.replicas=2", "learner.backend=TCP",
                       "environment.pixels.camera=lookatcart", "environment.pixels.renderer=OSMESA",
                       "checkpoint.replay=false", "environment.models=here"});
  const troupe::actors::RunConfig plan = plan_run(e);
  CHECK(plan.seed == 9);
  CHECK(plan.environment.task == "cartpole_balance");
  REQUIRE(plan.environment.pixels.has_value());
  CHECK(plan.environment.pixels->height == 64);
  CHECK(plan.environment.pixels->grey);
  CHECK_FALSE(plan.environment.pixels->effects);
  CHECK(plan.environment.pixels->camera == "lookatcart");
  CHECK(plan.environment.pixels->renderer == troupe::env::RendererKind::opengl);
  CHECK(plan.environment.pixels->gl == troupe::env::GlBackend::osmesa);
  CHECK(plan.environment.models == "here");
  CHECK(plan.environment.frame_stack == 3);
  CHECK(plan.environment.action_repeat == 8);
  CHECK(plan.agent->batch_size() == 128);
  CHECK(plan.replay.shards == 2);
  CHECK(plan.replay.samples_per_insert == 64);
  CHECK(plan.replay.n_step == 3);
  CHECK(plan.replay.discount == 0.97);
  CHECK(plan.learner.replicas == 2);
  CHECK(plan.learner.backend == "tcp");
  CHECK(plan.stop.minutes == 5);
  CHECK(plan.stop.evaluation_return == 900);
  CHECK_FALSE(plan.checkpoint.replay);
}

TEST_CASE("The recipe of MR.Q has the published pictures, and publishes each update") {
  const auto plan =
      plan_run(load_experiment(kConfigs / "recipes" / "mrq_walker_walk_pixels.textproto"));
  REQUIRE(plan.environment.pixels.has_value());
  CHECK(plan.environment.pixels->effects);
  CHECK(plan.environment.pixels->camera == "0");
  CHECK(plan.learner.publish_period == 1);
}

TEST_CASE("An experiment and a plan have the same defaults") {
  const auto plan = plan_run(parse_experiment("environment { task: \"cartpole_balance\" }", "x"));
  const troupe::actors::RunConfig defaults;
  CHECK(plan.agent->batch_size() == troupe::learner::D4pgConfig{}.batch_size);
  CHECK(plan.replay.capacity_items == defaults.replay.capacity_items);
  CHECK(plan.replay.capacity_bytes == defaults.replay.capacity_bytes);
  CHECK(plan.replay.samples_per_insert == defaults.replay.samples_per_insert);
  CHECK(plan.learner.publish_period == defaults.learner.publish_period);
  CHECK(plan.learner.backend == defaults.learner.backend);
  CHECK(plan.actors.environment == defaults.actors.environment);
  CHECK(plan.actors.restarts == defaults.actors.restarts);
  CHECK(plan.evaluation.period == defaults.evaluation.period);
  CHECK(plan.stop.environment_steps == defaults.stop.environment_steps);
  CHECK(plan.checkpoint.minutes == defaults.checkpoint.minutes);
}
