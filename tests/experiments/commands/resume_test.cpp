#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "experiments/config/config.hpp"
#include "experiments/config/resume_changes.hpp"
#include "experiments/report/curve.hpp"
#include "experiments/run_folder/metrics_file.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "tests/experiments/commands/small_run.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::recursive_directory_iterator(folder), fs::recursive_directory_iterator()));
}

void without_last_column(const fs::path& metrics) {
  auto records = read_csv(read_text(metrics));
  std::ofstream out(metrics, std::ios::binary);
  for (auto& record : records) {
    record.pop_back();
    out << csv_record(record);
  }
}

Experiment with(const std::vector<std::string>& overrides) {
  return parse_experiment("environment { task: \"walker_walk\" }", "test", overrides);
}

} // namespace

TEST_CASE("Changes that a checkpoint cannot follow are refused with the reason, and other changes "
          "are accepted") {
  const Experiment before = with({});
  CHECK(changes_between(before, before).empty());
  for (const char* assignment :
       {"name=other", "seed=9", "deterministic=true", "environment.task=walker_run",
        "environment.action_repeat=3", "environment.pixels={height: 64}", "replay.n_step=2",
        "replay.discount=0.9", "d4pg.policy_layers=8,8", "d4pg.atoms=11", "d4pg.value_maximum=7",
        "learner.strategy=parameter_server"}) {
    CAPTURE(assignment);
    std::vector<std::string> overrides = {assignment};
    if (overrides[0] == "deterministic=true") {
      overrides.emplace_back("d4pg.precision=float32");
    }
    const auto refused = refused_changes(changes_between(before, with(overrides)));
    REQUIRE(refused.size() == 1);
    const std::string key = overrides[0].substr(0, overrides[0].find('='));
    CHECK(refused[0].starts_with(key));
    CHECK(has(refused[0], "must keep it: "));
    CHECK(has(refused[0], "or start a new run"));
  }
  for (const char* assignment :
       {"replay.shards=2", "learner.replicas=2", "actors.environment=7", "stop.environment_steps=9",
        "d4pg.policy_learning_rate=0.5", "checkpoint.keep_best=2", "replay.capacity_items=5000",
        "environment.episode_log=x", "environment.plugin=libmine.so"}) {
    CAPTURE(assignment);
    const auto changes = changes_between(
        before, with({assignment, "replay.minimum_items=2", "actors.random_steps=1"}));
    CHECK(changes.size() == 3);
    CHECK(refused_changes(changes).empty());
  }
  const std::string kept = "replay.n_step=" + std::to_string(before.replay().n_step());
  const auto agents = refused_changes(changes_between(before, with({"sac={ }", kept})));
  REQUIRE(agents.size() == 2);
  CHECK(agents[0].starts_with("d4pg was there and is not there"));
  CHECK(agents[1].starts_with("sac was not there and is there"));
  const auto changes = changes_between(before, with({"replay.shards=2"}));
  REQUIRE(changes.size() == 1);
  CHECK(has(text_of(changes[0]), "replay.shards was 1 and is 2"));
}

TEST_CASE("A run resumes with other counts and records its new configuration, and a refused resume "
          "changes nothing") {
  const SmallRun place;
  Program program(
      train_small({"--set", "replay.shards=3", "--set", "actors.environment=4", "--json"}),
      place.folder.path());
  REQUIRE(program.wait() == 0);
  const json first = last_json(program.output());
  const fs::path run = place.only_run();

  const std::string config = read_text(run / "config.textproto");
  const std::size_t before = entries(run);
  const Outcome refused = run_troupe({"resume", run.string(), "--set", "replay.n_step=2"});
  CAPTURE(refused.output);
  CHECK(refused.exit_code == 2);
  CHECK(has(refused.last_line, "replay.n_step was 5 and is 2"));
  CHECK(has(refused.last_line, "the items in replay depend on it"));
  const std::vector<std::string> impossible = {"--set", "learner.replicas=2", "--set",
                                               "learner.backend=TCP"};
  std::vector<std::string> words = {"resume", run.string()};
  words.insert(words.end(), impossible.begin(), impossible.end());
  const Outcome alone = run_troupe(words);
  CAPTURE(alone.output);
  CHECK(alone.exit_code == 2);
  CHECK(has(alone.last_line, "works between processes; add --processes"));
  CHECK(read_text(run / "config.textproto") == config);
  CHECK(entries(run) == before);
  Program untrained(train_small(impossible), place.folder.path());
  CHECK(untrained.wait() == 2);
  CHECK(place.only_run() == run); // no folder was made

  without_last_column(run / "metrics.csv"); // as if trained by an earlier version
  const Outcome more = run_troupe({"resume", run.string(), "--set", "replay.shards=2", "--set",
                                   "learner.replicas=2", "--set", "actors.environment=3", "--set",
                                   "stop.environment_steps=8000", "--json"});
  CAPTURE(more.output);
  REQUIRE(more.exit_code == 0);
  const json second = last_json(more.output);
  CHECK(second.at("environment_steps").get<int>() >= 8000);
  CHECK(second.at("updates").get<int>() > first.at("updates").get<int>());
  CHECK(second.at("inserts").get<int>() > first.at("inserts").get<int>());
  CHECK(read_text(run / "config-1.textproto") == config);
  CHECK(has(read_text(run / "config.textproto"), "shards: 2"));
  CHECK(has(read_text(run / "log.txt"), "replay.shards was 3 and is 2"));
  CHECK(has(read_text(run / "log.txt"), "the items of 3 replay shards are redistributed to 2"));
  CHECK_FALSE(has(read_text(run / "log.txt"), "nothing is left to train"));
  CHECK(has(read_text(run / "log.txt"), "and gets no values of learning_rate_scale\n"));
  const auto records = read_csv(read_text(run / "metrics.csv"));
  CHECK(records[0].back() == "dropped_gradients");
  for (const auto& record : records) {
    CHECK(record.size() == records[0].size());
  }
  CHECK(read_curve(run / "metrics.csv").back().environment_steps >= 8000);
  CHECK(run_troupe({"report", run.string()}).exit_code == 0);

  const Outcome done = run_troupe({"resume"}, place.folder.path()); // continues the newest run
  CAPTURE(done.output);
  CHECK(done.exit_code == 0);
  CHECK(has(
      read_text(run / "log.txt"),
      "nothing is left to train: stop.environment_steps is 8000 and counts from the run's start"));
}

TEST_CASE(
    "A deterministic run that is stopped by SIGTERM and resumed equals an uninterrupted run") {
  const std::vector<std::string> keys = {"--set", "deterministic=true",
                                         "--set", "d4pg.precision=float32",
                                         "--set", "stop.environment_steps=12000"};
  const SmallRun whole, parts;
  Program undisturbed(train_small(keys), whole.folder.path());
  Program stopped(train_small(keys), parts.folder.path());
  REQUIRE(stopped.read_until([](const std::string& text) { return has(text, "evaluation: "); }));
  stopped.send(SIGTERM);
  REQUIRE(stopped.wait() == 0);
  CHECK(has(stopped.output(), "interrupted"));
  const fs::path run = parts.only_run();
  const auto half = find_checkpoint(run).updates;
  const Outcome resumed = run_troupe({"resume", run.string()});
  CAPTURE(resumed.output);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(undisturbed.wait() == 0);
  const auto a = find_checkpoint(whole.only_run()), b = find_checkpoint(run);
  CHECK(half < b.updates);
  CHECK(a.updates == b.updates);
  for (const char* file : {"learner.safetensors", "optimizer.safetensors"}) {
    CAPTURE(file);
    CHECK(read_text(a.path / file) == read_text(b.path / file));
  }
}

TEST_CASE("A run that exceeds its grace period ends at once and can be resumed from the previous "
          "checkpoint") {
  const SmallRun place;
  Program program(
      train_small({"--set", "stop.environment_steps=100000000", "--set",
                   "checkpoint.grace_seconds=1e-9", "--set", "checkpoint.minutes=0.001"}),
      place.folder.path());
  REQUIRE(program.read_until([&](const std::string& text) {
    return has(text, "evaluation: ") && !complete_checkpoints(place.only_run()).empty();
  }));
  program.send(SIGTERM);
  CHECK(program.wait() == 130);
  CHECK(has(program.output(), "at the end of checkpoint.grace_seconds"));
  const Outcome resumed =
      run_troupe({"resume", place.only_run().string(), "--set", "stop.environment_steps=1", "--set",
                  "checkpoint.grace_seconds=0", "--set", "replay.minimum_items=1", "--set",
                  "actors.random_steps=1"});
  CAPTURE(resumed.output);
  CHECK(resumed.exit_code == 0);
}

TEST_CASE("A run killed long before checkpoint.minutes can be resumed") {
  const SmallRun place;
  Program program(train_small({"--set", "stop.environment_steps=100000000"}),
                  place.folder.path()); // checkpoint.minutes is 10
  REQUIRE(program.read_until([&](const std::string& text) {
    return has(text, "evaluation: ") && !complete_checkpoints(place.only_run()).empty();
  }));
  program.send(SIGKILL);
  program.wait();
  const Outcome resumed =
      run_troupe({"resume", place.only_run().string(), "--set", "stop.environment_steps=1", "--set",
                  "replay.minimum_items=1", "--set", "actors.random_steps=1"});
  CAPTURE(resumed.output);
  CHECK(resumed.exit_code == 0);
}

TEST_CASE("The best checkpoint is kept beside the newest one and can be evaluated") {
  const SmallRun place;
  Program program(train_small({"--set", "checkpoint.keep=1", "--set", "checkpoint.keep_best=1",
                               "--set", "deterministic=true", "--set", "d4pg.precision=float32",
                               "--set", "stop.environment_steps=6000"}),
                  place.folder.path());
  REQUIRE(program.wait() == 0);
  const fs::path run = place.only_run();
  const auto best = find_best_checkpoint(run);
  REQUIRE(best.evaluation_return);
  CHECK(complete_checkpoints(run).size() <= 2);
  const Outcome played =
      run_troupe({"evaluate", run.string(), "--best", "--episodes", "1", "--json"});
  CAPTURE(played.output);
  REQUIRE(played.exit_code == 0);
  CHECK(last_json(played.output).at("updates") == best.updates);
  const Outcome both = run_troupe({"evaluate", run.string(), "--best", "--step", "3"});
  CHECK(both.exit_code == 2);
}
