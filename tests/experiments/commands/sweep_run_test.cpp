#include "tests/experiments/commands/program.hpp"

#include "tests/doctest_torch.hpp"

#include <optional>
#include <utility>

#include "actors/run/run.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/plan.hpp"
#include "experiments/run_folder/folder_lock.hpp"
#include "experiments/run_folder/head_file.hpp"
#include "experiments/sweeps/sweep.hpp"
#include "tests/eventually.hpp"
#include "tests/experiments/commands/small_run.hpp"
#include "tests/folders.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

std::vector<std::string> sweep_small(const std::vector<std::string>& more) {
  std::vector<std::string> words = {in_build("troupe"), "sweep", "small.textproto"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Outcome run(const SmallRun& place, const std::vector<std::string>& words) {
  Program program(words, place.folder.path());
  const int exit_code = program.wait();
  return {exit_code, program.output(), program.last_line()};
}

} // namespace

TEST_CASE(
    "A sweep stopped by a signal continues with the same command and repeats no finished run") {
  const SmallRun place;
  const std::vector<std::string> words =
      sweep_small({"--seeds", "1,2,3", "--jobs", "2", "--set", "stop.environment_steps=6000"});
  Program program(words, place.folder.path());
  REQUIRE(program.read_until([](const std::string& text) { return has(text, "is done"); }));
  program.send(SIGINT);
  CHECK(program.wait() == 0);
  CAPTURE(program.output());
  CHECK(program.last_line() == "troupe: stopped by a signal; the same command continues");
  const std::size_t done = count(program.output(), " is done");
  CHECK(done >= 1);

  const Outcome rest = run(place, words);
  CAPTURE(rest.output);
  CHECK(rest.exit_code == 0);
  CHECK(count(rest.output, " is done") == 3 - done); // runs may end at the same time
  CHECK(has(rest.output, "small       3 of 3  evaluation_return"));
  const fs::path sweep = place.folder / "runs/small_sweep";
  for (const char* seed : {"1", "2", "3"}) {
    CAPTURE(seed);
    const fs::path part = sweep / ("small_seed=" + std::string(seed));
    CHECK(fs::is_regular_file(part / "result.json"));
    CHECK_FALSE(fs::exists(part / "result.partial"));
    const auto begun = std::distance(fs::directory_iterator(part / "small"), {});
    CHECK(begun <= 2); // stopped before their first checkpoint, so they start again
  }
  CHECK(count(read_text(sweep / "sweep.csv"), ",done,") == 3);
  CHECK(count(read_text(sweep / "curves.csv"), "small_seed=2,") >= 2);
  CHECK(has(read_text(sweep / "report.html"), "<svg"));

  const Outcome again = run(place, words);
  CHECK(again.exit_code == 0);
  CHECK_FALSE(has(again.output, "starts"));
  // More seeds add runs to the same sweep; other values make another sweep.
  auto more = words;
  more[4] = "1,4";
  const Outcome wider = run(place, more);
  CAPTURE(wider.output);
  CHECK(wider.exit_code == 0);
  CHECK(count(wider.output, " starts") == 1);
  auto other = words;
  other.insert(other.end(), {"--set", "replay.n_step=2"});
  const Outcome refused = run(place, other);
  CHECK(refused.exit_code == 2);
  CHECK(has(refused.last_line, "was started with other values"));
}

TEST_CASE("A failed run is reported with its own error, and the other runs are trained") {
  const SmallRun place;
  const Outcome failed =
      run(place, sweep_small({"--name", "bad", "--vary", "d4pg.reward_scale=1,1e300"}));
  CAPTURE(failed.output);
  CHECK(failed.exit_code == 1);
  CHECK(has(failed.last_line, "troupe: 1 of 2 runs failed; small_reward_scale=1e300_seed=1: "));
  CHECK(has(failed.output, "small_reward_scale=1      1 of 1"));
  CHECK(count(failed.output, "; trying again") == 1);
  CHECK(count(failed.output, "small_reward_scale=1e300_seed=1 failed: ") == 2);
  const Outcome mistaken = run(place, sweep_small({"--vary", "replay.n_step=0"}));
  CHECK(mistaken.exit_code == 2);
  CHECK_FALSE(fs::exists(place.folder / "runs/small_sweep"));
  const Outcome nowhere = run(place, sweep_small({"--set", "environment.models=/nowhere"}));
  CHECK(nowhere.exit_code == 2);
  CHECK(has(nowhere.last_line, "(run small_seed=1)"));
  const Outcome apart =
      run(place, sweep_small({"--vary", "learner.strategy=multi_worker,backup_workers"}));
  CHECK(apart.exit_code == 2);
  CHECK(has(apart.last_line, "backup_workers 1 must be fewer than the replicas, 1"));
  CHECK(has(apart.last_line, "(run small_strategy=backup_workers_seed=1)"));
  CHECK_FALSE(fs::exists(place.folder / "runs/small_sweep"));
}

TEST_CASE(
    "A run that is killed is reported with its signal, not with the error of an earlier one") {
  const SmallRun place;
  const fs::path part = place.folder / "runs/small_sweep/small_seed=1";
  fs::create_directories(part);
  std::ofstream(part / "errors.txt") << "troupe: an earlier failure\n";
  Program program(sweep_small({"--attempts", "1", "--set", "stop.environment_steps=2000000000"}),
                  place.folder.path());
  REQUIRE(testing::comes_true([&] {
    std::error_code none_yet;
    for (const auto& entry : fs::directory_iterator(part / "small", none_yet))
      if (fs::exists(entry.path() / "head.json"))
        return ::kill(static_cast<pid_t>(find_live_run(entry.path(), {}).head.process), SIGKILL)
               == 0;
    return false;
  }));
  CHECK(program.wait() == 1);
  CAPTURE(program.output());
  CHECK(
      has(program.last_line(), "troupe: 1 of 1 runs failed; small_seed=1: was killed by signal 9"));
  CHECK_FALSE(has(program.output(), "an earlier failure"));
}

TEST_CASE("A sweep that cannot write its results goes on and writes them after the next run") {
  const SmallRun place;
  Program program(sweep_small({"--seeds", "1,2"}), place.folder.path());
  REQUIRE(program.read_until([](const std::string& text) { return has(text, "seed=1 starts"); }));
  const fs::path in_the_way = place.folder / "runs/small_sweep/sweep.csv.partial";
  fs::create_directory(in_the_way);
  REQUIRE(program.read_until(
      [](const std::string& text) { return has(text, "trying again when the next run ends"); }));
  fs::remove(in_the_way);
  CHECK(program.wait() == 0);
  CAPTURE(program.output());
  CHECK(count(program.output(), " is done") == 2);
  CHECK(count(read_text(place.folder / "runs/small_sweep/sweep.csv"), ",done,") == 2);
}

TEST_CASE("A run that cannot start has failed, and the other runs are trained") {
  const SmallRun place;
  const fs::path sweep = place.folder / "runs/small_sweep";
  fs::create_directories(sweep);
  std::ofstream(sweep / "small_seed=2") << "no folder";
  const Outcome outcome = run(place, sweep_small({"--seeds", "1,2", "--jobs", "2"}));
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 1);
  CHECK(has(outcome.last_line, "troupe: 1 of 2 runs failed; small_seed=2: "));
  CHECK(count(outcome.output, "small_seed=1 is done") == 1);
}

TEST_CASE("A run on which another process still works starts once that process has ended") {
  const SmallRun place;
  const fs::path begun = place.folder / "runs/small_sweep/small_seed=1/small/2026-01-01T00-00-00";
  fs::create_directories(begun);
  std::ofstream(begun / "config.textproto")
      << resolved_text(load_experiment(place.folder / "small.textproto", {"seed=1"}));
  std::optional<FolderLock> lock(std::in_place, begun, "this run");
  Program program(sweep_small({"--attempts", "1"}), place.folder.path());
  REQUIRE(program.read_until([](const std::string& text) {
    return has(text, "small_seed=1 waits for the process that still works on ");
  }));
  lock.reset();
  CHECK(program.wait() == 0);
  CAPTURE(program.output());
  CHECK(count(program.output(), " waits for ") == 1);
  CHECK(count(program.output(), " starts") == 1);
  CHECK(count(program.output(), " is done") == 1);
}

TEST_CASE("The bundled sweeps plan only valid runs") {
  const fs::path configs = in_source("experiments/configs");
  for (const auto& entry : fs::directory_iterator(configs / "sweeps")) {
    const std::string source = entry.path().string();
    for (const SweepRun& one :
         plan_sweep(parse_sweep(read_config_file(source), source), source, {configs})) {
      CAPTURE(one.name);
      CHECK(error_of([&] { actors::check_run(plan_run(one.experiment), false); }) == "");
    }
  }
}

TEST_CASE("A dry run prints its runs as commands, and a sweep of experiments needs no file") {
  const SmallRun place;
  const Outcome dry = run(place, sweep_small({"walker_walk", "--seeds", "5", "--dry-run"}));
  CAPTURE(dry.output);
  CHECK(dry.exit_code == 0);
  CHECK(has(dry.output, "small_seed=5: troupe train small.textproto --set seed=5\n"));
  CHECK(has(dry.output, "walker_walk_seed=5: troupe train "));
  CHECK_FALSE(fs::exists(place.folder / "runs"));
  fs::create_directory(place.folder / "a b");
  fs::copy(place.folder / "small.textproto", place.folder / "a b");
  const Outcome quoted =
      run(place, {in_build("troupe"), "sweep", "a b/small.textproto", "--dry-run"});
  CHECK(has(quoted.output, ": troupe train 'a b/small.textproto' --set seed="));
  const Outcome nine = run(place, {in_build("troupe"), "sweep", "d4pg_nine", "--dry-run"});
  CHECK(count(nine.output, "troupe train ") == 18);
}

TEST_CASE("A second signal kills the runs of a sweep, and the same command continues it") {
  const SmallRun place;
  const auto words = sweep_small({"--set", "stop.environment_steps=6000"});
  const fs::path part = place.folder / "runs/small_sweep/small_seed=1";
  Program program(words, place.folder.path());
  fs::path begun;
  REQUIRE(testing::comes_true([&] { // the run, a process of its own, handles signals
    std::error_code none_yet;
    for (const auto& entry : fs::directory_iterator(part / "small", none_yet))
      if (fs::exists(entry.path() / "metrics.csv"))
        begun = entry.path();
    return !begun.empty();
  }));
  CHECK(is_run_held(begun) == true);
  program.send(SIGTERM);
  program.send(SIGINT);
  CHECK(program.wait() == 130);
  CHECK(testing::comes_true( // the run's head ends just after the process that watches it
      [&] { return is_run_held(begun) == false; }));
  CHECK_FALSE(fs::exists(part / "result.json"));
  const Outcome rest = run(place, words);
  CAPTURE(rest.output);
  CHECK(rest.exit_code == 0);
  CHECK(count(rest.output, " is done") == 1);
  CHECK(fs::is_regular_file(part / "result.json"));
}
