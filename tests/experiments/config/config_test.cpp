#include "experiments/config/config.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <set>

#include <google/protobuf/util/message_differencer.h>

#include "env/make/make.hpp"
#include "experiments/config/keys.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/config/plan.hpp"
#include "experiments/config/settings.hpp"
#include "learner/agents/agent_kinds.hpp"
#include "learner/agents/training_config.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

const std::string kGood = "environment { task: \"cartpole_balance\" }\n";

std::string complaint_about(const std::string& text, const std::vector<std::string>& sets = {}) {
  return error_of([&] { parse_experiment(text, "bad.textproto", sets); });
}

const std::string kPixels = "environment { task: \"cartpole_balance\" pixels { grey: true } }\n";

} // namespace

TEST_CASE("All violated rules are reported in order") {
  try {
    parse_experiment(kGood + "replay { shards: 0 discount: 2 }", "x", {"seed=1"});
    FAIL("nothing was refused");
  } catch (const ConfigError& error) {
    REQUIRE(error.complaints().size() == 2);
    CHECK(error.complaints()[0].find("replay.shards") != std::string::npos);
    CHECK(error.complaints()[1].find("replay.discount") != std::string::npos);
    CHECK(error.complaints()[0] == error.what());
  }
}

TEST_CASE("--set reaches every key, and setting the default changes nothing") {
  const std::string classifier = "data { path: \"scenes\" } classifier { }";
  for (const Key& key : all_keys()) {
    const bool of_data = key.name.starts_with("data.") || key.name.starts_with("classifier.");
    const auto* agent = troupe::learner::find_agent(key.name.substr(0, key.name.find('.')));
    const bool recorded = key.name.starts_with("bc.") || key.name.starts_with("recording.");
    const std::string text =
        recorded                         ? kGood + "bc { } recording { path: \"episodes\" }"
        : of_data                        ? classifier
        : key.name.starts_with("sngan.") ? "data { path: \"scenes\" } sngan { }"
        : agent == nullptr               ? kPixels
                                         : (agent->pixels ? kPixels : kGood) + agent->name + " { }";
    const Experiment plain = parse_experiment(text, "x");
    if (key.name == "environment.task" || key.name == "name" || key.name == "data.path"
        || key.name == "recording.path" || key.name == "base" || key.name.starts_with("agent.")) {
      continue; // they have no usable default
    }
    if (key.name == "environment.pixels.grey") {
      continue; // already set to another value
    }
    CAPTURE(key.name);
    const Experiment set = parse_experiment(text, "x", {key.name + "=" + default_text(*key.field)});
    CHECK(google::protobuf::util::MessageDifferencer::Equals(plain, set));
  }
}

TEST_CASE("The agent is the one whose block the file has, or else the first of the list") {
  CHECK(parse_experiment(kGood, "x").has_d4pg());
  const Experiment e = parse_experiment(kGood + "sac { temperature: 0.5 }", "x");
  CHECK_FALSE(e.has_d4pg());
  CHECK(e.sac().temperature() == 0.5);
  CHECK(e.sac().policy_layers_size() == 2); // the other keys keep their defaults
  CHECK(google::protobuf::util::MessageDifferencer::Equals(
      e, parse_experiment(resolved_text(e), "x")));
  CHECK(parse_experiment(kGood + "td3 { }", "x").td3().policy_period() == 2);
  CHECK(complaint_about(kGood + "agent { name: \"mine\" }", {}).find("plugin is empty")
        != std::string::npos);
}

TEST_CASE("A short run is refused for the steps before learning only if its agent has such steps") {
  const std::string text = kGood + "stop { environment_steps: 500 }\n";
  for (const char* agent : {"ppo { }", "impala { }"}) {
    CAPTURE(agent);
    CHECK(complaint_about(text + agent).empty());
  }
  for (const char* agent : {"d4pg { }", "sac { }"}) {
    CAPTURE(agent);
    CHECK(complaint_about(text + agent).find("replay.minimum_items is 1000") != std::string::npos);
  }
}

TEST_CASE("Agents have their own defaults of keys of other blocks, which a file may override") {
  const auto plan = [](const std::string& text) { return plan_run(parse_experiment(text, "x")); };
  const actors::RunConfig sac = plan(kGood + "sac { batch_size: 64 }");
  CHECK(sac.replay.n_step == 1);
  CHECK(sac.replay.samples_per_insert == 64); // one update per step
  CHECK(sac.learner.publish_period == 1);
  const actors::RunConfig own = plan(kGood
                                     + "sac { } replay { n_step: 4 samples_per_insert: 2 } "
                                       "learner { publish_period: 7 }");
  CHECK(own.replay.n_step == 4);
  CHECK(own.replay.samples_per_insert == 2);
  CHECK(own.learner.publish_period == 7);
  const actors::RunConfig general = plan(kGood + "d4pg { }");
  CHECK(general.replay.n_step == actors::RunConfig().replay.n_step);
  CHECK(complaint_about(kGood + "td3 { batch_size: -1 }", {}).find("td3.batch_size is -1")
        != std::string::npos);
}

TEST_CASE("An experiment on a recording has no keys for actors and survives a round trip") {
  const std::string text = kGood + "td3 { } recording { path: \"episodes\" updates: 70 }";
  const Experiment e = parse_experiment(text, "x", {"replay.n_step=2"});
  CHECK_FALSE(e.has_actors());
  CHECK_FALSE(e.stop().has_environment_steps());
  CHECK(google::protobuf::util::MessageDifferencer::Equals(
      e, parse_experiment(resolved_text(e), "x")));
  const auto plan = plan_run(e);
  CHECK_FALSE(plan.plays());
  CHECK(plan.stop.updates == 70);
  CHECK(plan.actors.environment == 0);
  for (const std::string key : {"actors { random_steps: 5 }", "replay { samples_per_insert: 8 }",
                                "stop { environment_steps: 9 }"}) {
    CAPTURE(key);
    CHECK(complaint_about(text + key, {}).find("has no environment actors") != std::string::npos);
  }
  CHECK(complaint_about(kGood + "bc { }", {}).find("recording.path") != std::string::npos);
  CHECK(complaint_about(kGood + "td3 { } recording { }", {}).find("recording.path is missing")
        != std::string::npos);
  CHECK(complaint_about(text + "replay { sampler: \"fifo\" }", {}).find("replay.sampler")
        != std::string::npos);
}

TEST_CASE("An experiment on data has no environment blocks and survives a round trip") {
  const std::string text = "data { path: \"scenes\" epochs: 3 } classifier { model: \"mlp\" }";
  const Experiment e = parse_experiment(text, "x", {"classifier.layers=32"});
  CHECK_FALSE(e.has_environment());
  CHECK_FALSE(e.has_replay());
  CHECK_FALSE(e.has_d4pg());
  CHECK_FALSE(e.has_actors());
  CHECK(e.data().epochs() == 3);
  CHECK(e.classifier().layers_size() == 1);
  CHECK(google::protobuf::util::MessageDifferencer::Equals(
      e, parse_experiment(resolved_text(e), "x")));
  CHECK(parse_experiment(text + "deterministic: true", "x").classifier().precision() == "float32");
  const auto refused = [](const std::string& bad, const std::vector<std::string>& sets = {}) {
    return error_of([&] { parse_experiment(bad, "x", sets); });
  };
  CHECK(refused(text, {"replay.shards=2"}).find("replay applies to runs in an environment")
        != std::string::npos);
  CHECK(refused(text, {"learner.learning_rate.updates=5"})
            .find("learner.learning_rate applies to runs in an environment")
        != std::string::npos);
  for (const std::string key :
       {"evaluation.period=5", "stop.environment_steps=9", "stop.evaluation_return=1",
        "checkpoint.replay=true", "learner.publish_period=2", "learner.prefetch=2",
        "learner.gather_threads=2"}) {
    CAPTURE(key);
    CHECK(refused(text, {key}).find(" applies to runs in an environment") != std::string::npos);
  }
  CHECK(refused(text + "sngan { }").find("sngan is given together with classifier")
        != std::string::npos);
  CHECK(refused(kPixels + text.substr(0, text.find("classifier"))).find("nothing learns from data")
        != std::string::npos);
  CHECK(refused("classifier { }").find("data.path is missing") != std::string::npos);
  CHECK(refused(text, {"learner.replicas=3"}).find("must be a multiple of learner.replicas")
        != std::string::npos);
  CHECK(refused(text, {"data.threads=3"}).find("data.prefetch is 2") != std::string::npos);
}

TEST_CASE("--set replaces a value, a list or a block, and the last assignment wins") {
  const Experiment e = parse_experiment(
      kPixels + "d4pg { policy_layers: [1, 2, 3] }", "x",
      {"d4pg.policy_layers=64,32", "seed=3", "seed=4", "environment.pixels.height=40",
       "environment.task=\"Hopper-v5\"", "learner.backend=TCP", "replay.discount=5e-1",
       "environment.options=ctrl_cost_weight=1,\"healthy_z_range=0.2,1\",frame_skip=2"});
  CHECK(e.d4pg().policy_layers_size() == 2);
  CHECK(e.d4pg().policy_layers(1) == 32);
  CHECK(e.seed() == 4);
  CHECK(e.environment().pixels().height() == 40);
  CHECK(e.environment().pixels().grey());
  CHECK(e.environment().task() == "Hopper-v5");
  CHECK(e.learner().backend() == Learner::TCP);
  CHECK(e.replay().discount() == 0.5);
  REQUIRE(e.environment().options_size() == 3);
  CHECK(e.environment().options(0) == "ctrl_cost_weight=1");
  CHECK(e.environment().options(1) == "healthy_z_range=0.2,1");

  const Experiment brackets = parse_experiment(
      kPixels, "x",
      {"d4pg.policy_layers=[64, 32]", "d4pg.critic_layers=[]", "environment.task=Hopper-v5",
       "environment.options=[ctrl_cost_weight=1, \"healthy_z_range=0.2,1\" ]"});
  CHECK(brackets.d4pg().policy_layers(1) == 32);
  CHECK(brackets.d4pg().critic_layers_size() == e.d4pg().critic_layers_size()); // the default
  CHECK(brackets.environment().options(1) == "healthy_z_range=0.2,1");

  const Experiment states = parse_experiment(kPixels, "x", {"environment.pixels="});
  CHECK_FALSE(states.environment().has_pixels());
  const Experiment block = parse_experiment(kGood, "x", {"environment.pixels={height: 50}"});
  CHECK(block.environment().pixels().height() == 50);
  CHECK(block.environment().pixels().width() == 84);
}

TEST_CASE("Parsing fills in lists, names and blocks, but no pixels block") {
  const Experiment e = parse_experiment(kGood, "some/folder/mine.textproto");
  CHECK(e.name() == "mine");
  CHECK(e.d4pg().policy_layers_size() == 3);
  CHECK(e.has_checkpoint());
  CHECK(e.stop().has_minutes());
  CHECK_FALSE(e.environment().has_pixels());
  CHECK(parse_experiment(kGood + "deterministic: true", "x").d4pg().precision() == "float32");
}

TEST_CASE("The metrics columns include diagnostics where they are enabled") {
  const auto columns = [](const std::string& more) {
    const auto names = metrics_columns(parse_experiment(kGood + more, "x"));
    return std::set<std::string>(names.begin(), names.end());
  };
  const auto usual = columns("");
  const auto diagnosed = columns("learner { diagnostics_period: 1000 }");
  CHECK(usual.contains("critic_loss"));
  CHECK_FALSE(usual.contains("feature_rank"));
  for (const std::string& name : troupe::learner::TrainingConfig::diagnoses())
    CHECK(diagnosed.contains(name));
  CHECK(diagnosed.contains("evaluation_q_bias"));
  CHECK(diagnosed.size() == usual.size() + 8 + 3);
}

TEST_CASE("The resolved text parses back to the same experiment") {
  const std::vector<std::string> sets = {"replay.discount=0.1234567890123456789",
                                         "d4pg.value_maximum=33.3", "seed=18446744073709551615",
                                         "environment.models=a \"quoted\" \\ folder\xc3\xa9",
                                         "d4pg.critic_layers=7"};
  for (const std::string& text : {kGood, kPixels}) {
    const Experiment first = parse_experiment(text, "x.textproto", sets);
    const std::string resolved = resolved_text(first);
    const Experiment second = parse_experiment(resolved, "config.textproto");
    CHECK(google::protobuf::util::MessageDifferencer::Equals(first, second));
    CHECK(resolved_text(second) == resolved);
  }
}

TEST_CASE("The settings of an experiment map dotted keys to its values") {
  const Settings settings = settings_of(parse_experiment(
      "seed: 7 environment { task: \"walker_walk\" } d4pg { policy_layers: [16, 8] }", "x"));
  CHECK(std::get<double>(settings.at("seed")) == 7);
  CHECK(std::get<std::string>(settings.at("environment.task")) == "walker_walk");
  CHECK(std::get<std::string>(settings.at("d4pg.policy_layers")) == "16,8");
  CHECK(std::get<std::string>(settings.at("learner.backend")) == "AUTO");
  CHECK(std::get<bool>(settings.at("evaluation.video")));
  CHECK(std::get<double>(settings.at("replay.discount")) == 0.99);
  CHECK(settings.size() > 90);
  CHECK_FALSE(settings.contains("sac.batch_size"));
}

TEST_CASE("Every key can be found and has help and a rule") {
  for (const Key& key : all_keys()) {
    CAPTURE(key.name);
    CHECK_FALSE(rule_of(*key.field).help().empty());
    CHECK(find_key(key.name) == key.field);
    CHECK_FALSE(rule_text(*key.field).empty());
  }
  CHECK(find_key("replay") != nullptr);
  CHECK(find_key("") == nullptr);
  CHECK(find_key("replay.") == nullptr);
  CHECK(find_key("seed.seed") == nullptr);
}

TEST_CASE("A file that cannot be read is reported as a configuration error") {
  const TemporaryFolder folder;
  const auto message = [](const std::filesystem::path& path) {
    return error_of([&] { load_experiment(path); });
  };
  CHECK(message(folder.path()).find("is a folder") != std::string::npos);
  CHECK(message(folder.path() / "none").find("No such file") != std::string::npos);
  std::ofstream(folder.path() / "large") << std::string((1 << 20) + 1, ' ');
  CHECK(message(folder.path() / "large").find("larger than 1 MiB") != std::string::npos);
}

TEST_CASE("An experiment is found by path and by name, and an unknown name is reported with the "
          "nearest names") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "swing.textproto") << kGood;
  const std::vector<std::filesystem::path> folders = {folder.path() / "none", folder.path()};
  CHECK(find_config("swing", folders) == folder.path() / "swing.textproto");
  CHECK(find_config("swing.textproto", folders) == folder.path() / "swing.textproto");
  CHECK(find_config((folder.path() / "swing.textproto").string(), {})
        == folder.path() / "swing.textproto");
  CHECK(config_names(folders) == std::vector<std::string>{"swing"});
  CHECK(error_of([&] { find_config("swong", folders); })
        == "swong: there is no such file and no experiment of this name; did you mean swing? "
           "(`troupe list experiments` names them all)");
  CHECK(error_of([&] {
          find_config("zzzzzz", folders, {"sweep", "experiment"});
        })
        == "zzzzzz: there is no such file and no sweep or experiment of this name; did you mean "
           "swing? (`troupe list "
           "sweeps` and `troupe list experiments` name them all)");
}

TEST_CASE("Numbers are printed without exponents or superfluous digits") {
  CHECK(number_text(1e9) == "1000000000");
  CHECK(number_text(3e-4) == "0.0003");
  CHECK(number_text(0) == "0");
  CHECK(number_text(33.3) == "33.3");
}
