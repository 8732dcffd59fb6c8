#include "experiments/sweeps/sweep.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <map>

#include "experiments/config/config.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

const fs::path kConfigs = in_source("experiments/configs");

std::string complaint(const std::string& text) {
  return error_of(
      [&] { plan_sweep(parse_sweep(text, "bad.textproto"), "bad.textproto", {kConfigs}); });
}

std::vector<std::string> names(const std::vector<SweepRun>& runs) {
  std::vector<std::string> out;
  for (const SweepRun& run : runs)
    out.push_back(run.name);
  return out;
}

std::vector<SweepRun> plan(const std::string& text) {
  return plan_sweep(parse_sweep(text, "few.textproto"), "few.textproto", {kConfigs});
}

std::vector<std::string> planned(const fs::path& folder, const std::string& text) {
  return names(
      plan_sweep(parse_sweep(text, "few.textproto"), folder / "few.textproto", {kConfigs}));
}

const std::string kResult = R"({"run": "r", "interrupted": false, "error": "",
  "returns": [10, 30], "metrics": {}, "environment_steps": 1000, "updates": 50,
  "training_seconds": 2.5})";

} // namespace

TEST_CASE("The bundled sweeps name existing experiments, and a goal for each run that is not "
          "compared with published curves or a base") {
  std::map<std::string, std::size_t> runs_of;
  for (const auto& entry : fs::directory_iterator(kConfigs / "sweeps")) {
    CAPTURE(entry.path());
    const std::string text = read_text(entry.path());
    CHECK(text.starts_with("# "));
    CHECK(has(text, "#   troupe sweep " + entry.path().stem().string() + " "));
    CHECK(is_sweep(text));
    const Sweep sweep = parse_sweep(text, entry.path().string());
    const auto runs = plan_sweep(sweep, entry.path(), {kConfigs});
    const bool is_compared = has(text, "../published/") || sweep.variant_size() > 0;
    for (const SweepRun& run : runs)
      CHECK(run.goal.has_value() != is_compared);
    runs_of[entry.path().stem().string()] = runs.size();
  }
  CHECK(runs_of
        == std::map<std::string, std::size_t>{{"ablations", 24},
                                              {"ablations_blocks", 16},
                                              {"d4pg_backup_workers", 2},
                                              {"d4pg_nine", 18},
                                              {"d4pg_pixels", 20},
                                              {"d4pg_replicas", 12},
                                              {"d4pg_states", 36},
                                              {"pixels_18", 36},
                                              {"states_18", 36},
                                              {"states_18_narrow", 36},
                                              {"states_28", 56}});
}

TEST_CASE("A sweep contains every combination of experiments, values and seeds") {
  const auto runs = plan(R"(experiment: ["walker_walk", "cheetah_run"] seed: [1, 7]
    vary { key: "replay.n_step" value: ["1", "5"] } vary { key: "d4pg.policy_layers" value: "8,8" }
    set: "stop.environment_steps=2000")");
  CHECK(runs.size() == 8);
  CHECK(names(runs)[0] == "walker_walk_n_step=1_policy_layers=8_8_seed=1");
  CHECK(names(runs)[1] == "walker_walk_n_step=1_policy_layers=8_8_seed=7");
  CHECK(names(runs)[7] == "cheetah_run_n_step=5_policy_layers=8_8_seed=7");
  CHECK(runs[7].experiment.environment().task() == "cheetah_run");
  CHECK(runs[7].experiment.seed() == 7);
  CHECK(runs[7].experiment.replay().n_step() == 5);
  CHECK(runs[7].experiment.stop().environment_steps() == 2000);
  CHECK(runs[6].group == runs[7].group);
  CHECK(runs[5].group != runs[6].group);
  CHECK(names(plan(R"(experiment: "quickstart" vary { key: "replay.shards" value: "1" }
    vary { key: "environment.pixels.height" value: "32" })"))[0]
        == "quickstart_shards=1_height=32_seed=1");
  // Keys with the same last part are written in full.
  CHECK(names(plan(R"(experiment: "walker_walk" vary { key: "learner.prefetch" value: "3" }
    vary { key: "checkpoint.minutes" value: "1" } vary { key: "stop.minutes" value: "2" })"))[0]
        == "walker_walk_prefetch=3_checkpoint.minutes=1_stop.minutes=2_seed=1");
}

TEST_CASE("Every variant of a sweep is trained with every value, and sets its keys last") {
  const auto runs = plan(R"(experiment: "walker_walk" set: ["replay.n_step=2", "replay.shards=1"]
    vary { key: "d4pg.batch_size" value: ["32", "64"] }
    variant { name: "base" }
    variant { name: "far" set: ["replay.n_step=7", "d4pg.target_update=0.5"] })");
  CHECK(names(runs)
        == std::vector<std::string>{"walker_walk_batch_size=32_variant=base_seed=1",
                                    "walker_walk_batch_size=32_variant=far_seed=1",
                                    "walker_walk_batch_size=64_variant=base_seed=1",
                                    "walker_walk_batch_size=64_variant=far_seed=1"});
  CHECK(runs[2].experiment.replay().n_step() == 2);
  CHECK(runs[3].experiment.replay().n_step() == 7);
  CHECK(runs[3].experiment.replay().shards() == 1);
  CHECK(runs[2].group != runs[3].group);
}

TEST_CASE("An invalid sweep is refused, and the error names the place and a remedy") {
  CHECK(has(complaint(""), "experiment is not given"));
  CHECK(has(complaint("experiment: \"walkr_walk\""), "did you mean walker_walk"));
  CHECK(has(complaint("experimnt: \"x\""), "bad.textproto:1:1: experimnt is not a key"));
  CHECK(has(complaint("experimnt: \"x\""), "`troupe list sweep-keys` names them all"));
  CHECK(has(complaint("experiment: \"walker_walk\" jobs: 0"), "jobs is 0"));
  CHECK(has(complaint("experiment: \"walker_walk\"\nvary { key: \"replay.nstep\" value: \"1\" }"),
            "bad.textproto:2:1: vary[0].key is \"replay.nstep\", which is not a key of an "
            "experiment; did you "
            "mean replay.n_step"));
  CHECK(has(complaint("experiment: \"walker_walk\" vary { key: \"seed\" value: \"1\" }"),
            "list the seeds in seed: [1, 2]"));
  CHECK(has(complaint("experiment: \"walker_walk\" vary { key: \"replay.n_step\" }"),
            "vary[0].value is not given"));
  CHECK(has(complaint("experiment: \"walker_walk\" vary { key: \"replay.n_step\" value: \"0\" }"),
            "replay.n_step is 0"));
  CHECK(has(complaint("experiment: \"walker_walk\" vary { key: \"replay.n_step\" value: \"0\" }"),
            "(run walker_walk_n_step=0_seed=1)"));
  CHECK(has(complaint("experiment: \"walker_walk\" seed: [3, 3]"),
            "two runs with the name walker_walk_seed=3"));
  CHECK(has(complaint("experiment: \"walker_walk\" goal { experiment: \"walker_run\" value: 1 }"),
            "not one of the sweep's"));
  const std::string walk = "experiment: \"walker_walk\"\n";
  CHECK(has(complaint(walk + "variant { set: \"replay.n_step=1\" }"),
            "bad.textproto:2:1: variant[0].name is \"\"; folders are named after it"));
  for (const std::string name : {"a/b", "a=b"})
    CHECK(has(complaint(walk + "variant { name: \"" + name + "\" }"),
              "variant[0].name is \"" + name + "\""));
  CHECK(has(complaint(walk + "variant { name: \"a\" } variant { name: \"a\" }"),
            "variant[1].name is \"a\", which another variant has too"));
  CHECK(has(complaint(walk + "variant { name: \"near\" set: \"replay.n_step=0\" }"),
            "(run walker_walk_variant=near_seed=1)"));
  Sweep sweep;
  sweep.add_experiment("walker_walk");
  CHECK_THROWS_AS(add_varied({"replay.n_step"}, sweep), ConfigError);
  CHECK_THROWS_AS(add_varied({"replay.n_step="}, sweep), ConfigError);
  add_varied({"replay.n_step=1,3"}, sweep);
  CHECK(sweep.vary(0).value_size() == 2);
}

TEST_CASE("An assignment that a seed or a varied key would override is refused") {
  const std::string walk = "experiment: \"walker_walk\"\n";
  CHECK(has(complaint(walk + "set: \"seed=7\""),
            "bad.textproto:2:1: set[0] is \"seed=7\"; list the seeds in seed: [1, 2]"));
  CHECK(has(complaint(walk + "variant { name: \"x\" set: \"seed=7\" }"),
            "variant[0].set[0] is \"seed=7\"; list the seeds"));
  const std::string vary = walk + "vary { key: \"replay.n_step\" value: [\"1\", \"3\"] }\n";
  const std::string remedy = "but replay.n_step is varied; list all values in vary";
  for (const char* key : {"replay.n_step=5", "replay={}"}) {
    CAPTURE(key);
    CHECK(has(complaint(vary + "set: [\"replay.shards=1\", \"" + key + "\"]"),
              "set[1] is \"" + std::string(key) + "\", " + remedy));
    CHECK(has(complaint(vary + "variant { name: \"x\" set: \"" + key + "\" }"), remedy));
  }
  CHECK(has(complaint(walk + "vary { key: \"replay\" value: \"{}\" } set: \"replay.n_step=5\""),
            "but replay is varied"));
  CHECK(complaint(vary + "set: \"replay.n_steps=5\"").find(remedy) == std::string::npos);
  Sweep sweep;
  sweep.add_experiment("walker_walk");
  sweep.add_set("replay.n_step=5"); // --set
  CHECK(has(error_of([&] { add_varied({"replay.n_step=1,3"}, sweep); }), remedy));
}

TEST_CASE("A sweep with too many runs is refused before its combinations are made") {
  Sweep sweep;
  sweep.set_name("large");
  sweep.add_experiment("walker_walk");
  sweep.add_seed(1);
  for (int key = 0; key < 10; ++key) {
    Vary& vary = *sweep.add_vary();
    vary.set_key("key" + std::to_string(key));
    for (int value = 0; value < 10; ++value)
      vary.add_value(std::to_string(value));
  }
  CHECK(has(error_of([&] { plan_sweep(sweep, "", {kConfigs}); }),
            "large: has more than 10000 runs; list fewer values, or split it"));
}

TEST_CASE("A sweep file is distinguished from an experiment file") {
  CHECK(is_sweep("# words of an experiment:\nname: \"x\"\n experiment : [\"a\"]"));
  CHECK_FALSE(is_sweep("environment { task: \"walker_walk\" }"));
  CHECK_FALSE(is_sweep("# experiment: none\nreplay { }"));
}

TEST_CASE("A run is done when its result says so, and a run begun with other values is refused") {
  const TemporaryFolder folder;
  const auto runs = plan("experiment: \"walker_walk\"");
  const fs::path part = folder / "part";
  CHECK(find_state(part, runs[0]).kind == RunState::Kind::waiting);
  const fs::path run = part / "walker_walk" / "2026-01-02T03-04-05";
  fs::create_directories(run);
  std::ofstream(run / "config.textproto") << resolved_text(runs[0].experiment);
  CHECK(find_state(part, runs[0]).kind == RunState::Kind::begun);
  CHECK(find_state(part, runs[0]).folder == run);
  std::ofstream(part / "result.json") << kResult;
  const RunState done = find_state(part, runs[0]);
  CHECK(done.kind == RunState::Kind::done);
  CHECK(done.value == 20);
  CHECK(done.environment_steps == 1000);
  CHECK(done.training_seconds == 2.5);
  const auto others = plan("experiment: \"walker_walk\" set: \"replay.n_step=2\"");
  const auto words = error_of<ConfigError>([&] { find_state(part, others[0]); });
  CHECK(has(words, "was started with other values (modified: replay.n_step: 5 -> 2)"));
  CHECK(has(words, "give the sweep another --name"));
  for (const char* bad : {"", "[]", "{\"interrupted\": 3}", "{\"interrupted\": false}"}) {
    CAPTURE(bad);
    std::ofstream(part / "result.json") << bad;
    CHECK_THROWS_AS(find_state(part, runs[0]), std::runtime_error);
  }
  RunState state;
  CHECK_FALSE(read_result("{\"interrupted\": true}", runs[0].experiment, state));
}

TEST_CASE("The table has one line per group with its goal, and the CSV has one row per run") {
  const auto runs = plan(R"(experiment: ["walker_walk", "cheetah_run"] seed: [1, 2]
    goal { experiment: "walker_walk" value: 15 } goal { experiment: "cheetah_run" value: 15 })");
  std::vector<RunState> states(4);
  states[0] = {.kind = RunState::Kind::done, .value = 10, .environment_steps = 7};
  states[1] = {.kind = RunState::Kind::done, .value = 20};
  states[2] = {.kind = RunState::Kind::done, .value = 14.5};
  states[3] = {.kind = RunState::Kind::failed, .failure = "a <b>"};
  CHECK(sweep_table(runs, states)
        == "experiment   runs    measure            mean  deviation  least  greatest  goal\n"
           "walker_walk  2 of 2  evaluation_return    15     7.0711     10        20  15 reached\n"
           "cheetah_run  1 of 2  evaluation_return  14.5          -   14.5      14.5  15 missed\n");
  const std::string csv = sweep_csv(runs, states);
  CHECK(has(csv, "\nwalker_walk_seed=1,walker_walk,1,done,evaluation_return,10,7,0,0.0\n"));
  CHECK(has(csv, "\ncheetah_run_seed=2,cheetah_run,2,failed,evaluation_return,,,,\n"));
  CHECK(has(sweep_page("x", runs, states), "cheetah_run_seed=2: a &lt;b&gt;"));
  const auto gan =
      plan("experiment: \"sngan_scenes\" goal { experiment: \"sngan_scenes\" value: 5 }");
  CHECK(has(sweep_table(gan, {{.kind = RunState::Kind::done, .value = 4}}), "5 reached"));
}

TEST_CASE("Curves are read from the metrics of the runs, and waiting runs have none") {
  const TemporaryFolder folder;
  const auto runs = plan("experiment: \"walker_walk\" seed: [1, 2]");
  std::ofstream(folder / "metrics.csv")
      << "kind,environment_steps,evaluation_return,evaluation_return_min,evaluation_return_max\n"
         "evaluation,100,5,4,6\ntraining,150,,,\nfinal,200,7,6.5,8\n";
  const std::vector<RunState> states = {{.kind = RunState::Kind::begun, .folder = folder.path()},
                                        {}};
  CHECK(sweep_curves(runs, states)
        == "run,steps,value,minimum,maximum\nwalker_walk_seed=1,100,5,4,6\n"
           "walker_walk_seed=1,200,7,6.5,8\n");
  std::ofstream(folder / "metrics.csv") << "kind,environ"; // its process died here
  CHECK(sweep_curves(runs, states) == "run,steps,value,minimum,maximum\n");
}

TEST_CASE("Experiments of a sweep can be in bundled subfolders or beside the sweep") {
  const TemporaryFolder folder;
  for (const char* sub : {"near", "far"}) {
    fs::create_directories(folder.path() / sub);
    std::ofstream(folder.path() / sub / "one.textproto") << "environment { task: \"walker_walk\" }";
  }
  CHECK(planned(folder.path(), "experiment: \"games/dqn_cartpole\"")
        == std::vector<std::string>{"dqn_cartpole_seed=1"});
  CHECK(planned(folder.path(),
                "experiment: [\"near/one\", \"far/one.textproto\", \"gym/sac_hopper\"]")
        == std::vector<std::string>{"near_one_seed=1", "far_one_seed=1", "sac_hopper_seed=1"});
  CHECK(has(complaint("experiment: \"games/dqn_cartpol\""), "did you mean"));
  CHECK(has(complaint("experiment: \"../configs/quickstart\""), "there is no such file"));
}
