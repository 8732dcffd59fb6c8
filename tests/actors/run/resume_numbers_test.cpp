// Runs that resume with other numbers of shards, replicas and actors; and which checkpoints are
// kept.
#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "actors/roles/checkpoint.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

RunConfig free_run(std::int64_t environment_steps) {
  RunConfig config = small(environment_steps);
  config.deterministic = false;
  config.replay.sampler = "prioritized";
  return config;
}

struct Heard {
  std::vector<std::string> lines;
  std::vector<Evaluated> evaluations;
  bool has(const std::string& part) const {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const auto& line) { return line.find(part) != std::string::npos; });
  }
};

RunResult go_on(const RunConfig& config, const fs::path& folder, const fs::path& checkpoint,
                Heard& heard) {
  const RunCallbacks callbacks{
      .progress = {},
      .evaluated = [&](const Evaluated& one) { heard.evaluations.push_back(one); },
      .log = [&](const std::string&, const std::string& text) { heard.lines.push_back(text); },
      .episode = {}};
  const std::atomic<bool> stop = false;
  return run(config, folder, checkpoint, {}, callbacks, stop);
}

TEST_CASE("A run resumes with more or fewer shards and keeps all its items and counters") {
  const TemporaryFolder folder;
  auto config = free_run(6000);
  config.actors.environments_per_actor = 3;
  config.replay.shards = 3;
  const RunResult three = play(config, folder.path());
  REQUIRE(three.error == "");
  fs::path checkpoint = three.checkpoint;
  for (const int shards : {5, 2, 3}) {
    CAPTURE(shards);
    config.replay.shards = shards; // it has already made all its steps, so nothing is added
    Heard heard;
    const RunResult more = go_on(config, folder.path(), checkpoint, heard);
    REQUIRE(more.error == "");
    CHECK(heard.has("replay shards are redistributed to " + std::to_string(shards)));
    CHECK(more.progress.replay_items == three.progress.replay_items);
    CHECK(more.progress.inserts == three.progress.inserts);
    CHECK(more.progress.environment_steps == three.progress.environment_steps);
    CHECK(more.progress.updates >= three.progress.updates);
    CHECK(more.progress.priorities >= three.progress.priorities);
    CHECK(saved_shards(more.checkpoint / "replay").size() == static_cast<std::size_t>(shards));
    verify_checkpoint(more.checkpoint);
    checkpoint = more.checkpoint;
  }
  config.stop.environment_steps = 9000; // it still learns and stores
  const RunResult last = play(config, folder.path(), checkpoint);
  REQUIRE(last.error == "");
  CHECK(last.progress.updates > three.progress.updates);
  CHECK(last.progress.replay_items > three.progress.replay_items);
}

TEST_CASE("A run that resumes without its items keeps their counts") {
  const TemporaryFolder folder;
  auto config = free_run(4000);
  config.checkpoint.replay = false;
  config.replay.max_times_sampled = 0;
  const RunResult before = play(config, folder.path());
  REQUIRE(before.error == "");
  const auto saved = read_manifest(before.checkpoint).state();
  config.stop.environment_steps = 5200;
  const RunResult more = play(config, folder.path(), before.checkpoint);
  REQUIRE(more.error == "");
  CHECK(more.progress.replay_items < before.progress.replay_items);
  CHECK(more.progress.inserts == saved.inserts() + more.progress.replay_items);
  CHECK(more.progress.samples >= saved.samples());
}

TEST_CASE("An evaluation that a stop interrupts is due again when the run resumes") {
  const TemporaryFolder folder;
  auto config = free_run(100'000'000);
  config.evaluation.period = 2000;
  config.evaluation.episodes = 100'000; // more than can be played before the stop
  std::atomic<bool> stop = false;
  RunCallbacks callbacks;
  callbacks.progress = [&](const Progress& now) {
    if (now.environment_steps >= config.evaluation.period)
      stop = true;
  };
  const RunResult result = run(config, folder.path(), {}, {}, callbacks, stop);
  REQUIRE(result.error == "");
  const auto state = read_manifest(result.checkpoint).state();
  CHECK(state.environment_steps() >= config.evaluation.period);
  CHECK(state.next_evaluation() <= state.environment_steps());
}

TEST_CASE("A deterministic run that resumes with another number of shards keeps its items and "
          "repeats bit for bit") {
  const TemporaryFolder folder, first, second;
  auto config = small(3000);
  config.actors.environments_per_actor = 3; // a multiple of both numbers of shards
  const RunResult half = play(config, folder.path());
  REQUIRE(half.error == "");
  config.replay.shards = 3;
  config.stop.environment_steps = 4500;
  const RunResult a = play(config, first.path(), half.checkpoint);
  const RunResult b = play(config, second.path(), half.checkpoint);
  REQUIRE(a.error == "");
  REQUIRE(b.error == "");
  CHECK(a.progress.updates > half.progress.updates);
  const auto inserted = a.progress.inserts - half.progress.inserts;
  CHECK(inserted > 0);
  CHECK(a.progress.replay_items == half.progress.replay_items + inserted);
  CHECK(b.progress.replay_items == a.progress.replay_items);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
}

TEST_CASE("A run resumes with any number of learner replicas") {
  const TemporaryFolder folder;
  auto config = free_run(3000);
  // In rounds, each update is due to certain items. Otherwise a pause lets several replicas make
  // all granted updates, after which the next ones might wait for more items than the run makes.
  config.deterministic = true;
  RunResult before = play(config, folder.path());
  REQUIRE(before.error == "");
  for (const int replicas : {2, 4, 1}) {
    CAPTURE(replicas);
    config.learner.replicas = replicas;
    config.stop.environment_steps += 1500;
    const RunResult more = play(config, folder.path(), before.checkpoint);
    REQUIRE(more.error == "");
    // 375 steps of the agent are worth 94 updates.
    CHECK(more.progress.updates > before.progress.updates + 80);
    before = more;
  }
}

TEST_CASE("A run with local SGD that resumes between two averages equals an uninterrupted one, and "
          "takes other numbers of replicas") {
  const auto config = [](std::int64_t steps, int replicas) {
    RunConfig made = small(steps);
    made.learner.strategy = "local_sgd local_steps=8";
    made.learner.replicas = replicas;
    return made;
  };
  const TemporaryFolder whole, parts, wider, alone;
  const RunResult a = play(config(2400, 2), whole.path());
  REQUIRE(a.error == "");
  const RunResult half = play(config(1600, 2), parts.path());
  REQUIRE(half.error == "");
  REQUIRE(half.progress.updates % 8 != 0);
  const RunResult b = play(config(2400, 2), parts.path(), half.checkpoint);
  REQUIRE(b.error == "");
  CHECK(a.progress.updates == b.progress.updates);
  for (const char* file : {"learner.safetensors", "learner-1.safetensors", "optimizer.safetensors",
                           "optimizer-1.safetensors"})
    check_equal(a.checkpoint, b.checkpoint, file);

  RunConfig idle = config(1600, 4); // makes no update, and saves what it has loaded
  idle.replay.samples_per_insert = 0.001;
  const RunResult more = play(idle, wider.path(), half.checkpoint);
  REQUIRE(more.error == "");
  REQUIRE(more.progress.updates == half.progress.updates);
  check_equal(half.checkpoint, more.checkpoint, "learner.safetensors");
  check_equal(half.checkpoint, more.checkpoint, "learner-1.safetensors");
  check_equal_files(half.checkpoint / "learner.safetensors",
                    more.checkpoint / "learner-3.safetensors");
  for (const int replicas : {4, 1}) {
    const RunResult last = play(config(2400, replicas), alone.path(), half.checkpoint);
    REQUIRE(last.error == "");
    CHECK(last.progress.updates == a.progress.updates);
  }
}

TEST_CASE(
    "A deterministic run that resumes with another samples_per_insert neither bursts nor waits") {
  const TemporaryFolder folder;
  auto config = small(3000);
  const RunResult before = play(config, folder.path());
  REQUIRE(before.error == "");
  config.stop.environment_steps = 4500;
  for (const double ratio : {16.0, 4.0}) {
    CAPTURE(ratio);
    config.replay.samples_per_insert = ratio;
    const TemporaryFolder other;
    const RunResult more = play(config, other.path(), before.checkpoint);
    REQUIRE(more.error == "");
    const auto made = static_cast<double>(more.progress.updates - before.progress.updates);
    CHECK(made == doctest::Approx(375 * ratio / 32).epsilon(0.1)); // 375 steps of the agent
  }
}

TEST_CASE("Environment actors that leave and return insert under their own names") {
  const TemporaryFolder folder;
  auto config = free_run(4000);
  config.replay.shards = 1; // each shard needs an environment that inserts into it
  config.replay.max_times_sampled = 0;
  RunResult before = play(config, folder.path());
  REQUIRE(before.error == "");
  for (const int actors : {4, 1, 4}) {
    CAPTURE(actors);
    config.actors.environment = actors;
    config.stop.environment_steps += 4000;
    const RunResult more = play(config, folder.path(), before.checkpoint);
    REQUIRE(more.error == "");
    // Each step of an episode, except the first n, inserts an item, and no item is mistaken for
    // another actor's.
    const auto added = more.progress.replay_items - before.progress.replay_items;
    CHECK(added > 800);
    CHECK(more.progress.inserts - before.progress.inserts == added);
    before = more;
  }
  Heard heard;
  config.actors.environments_per_actor = 2;
  config.stop.environment_steps += 1000;
  const RunResult wider = go_on(config, folder.path(), before.checkpoint, heard);
  REQUIRE(wider.error == "");
  CHECK(heard.has("4 of 4 environment actors start new episodes"));
}

TEST_CASE("Changes that a deterministic run cannot follow are refused before it begins") {
  const TemporaryFolder folder;
  auto config = small(2400);
  const RunResult half = play(config, folder.path());
  REQUIRE(half.error == "");
  config.actors.environment = 4;
  CHECK_THROWS_WITH_AS(play(config, folder.path(), half.checkpoint),
                       doctest::Contains("actors.environment 4: the run has 2"),
                       std::invalid_argument);
  config = small(2400);
  config.learner.strategy = "parameter_server";
  CHECK_THROWS_AS(play(config, folder.path(), half.checkpoint), std::invalid_argument);
}

TEST_CASE("A deterministic run keeps the checkpoint of its best evaluation with the evaluated "
          "parameters") {
  const TemporaryFolder folder;
  auto config = small(11'000); // does not end with an evaluation, which the last one would replace
  config.evaluation.period = 2000;
  config.evaluation.episodes = 2;
  config.checkpoint.keep = 1;
  config.checkpoint.keep_best = 1;
  Heard heard;
  const RunResult result = go_on(config, folder.path(), {}, heard);
  REQUIRE(result.error == "");
  REQUIRE(heard.evaluations.size() >= 4);
  double best = -1;
  for (const Evaluated& one : heard.evaluations)
    best = std::max(best, std::accumulate(one.returns.begin(), one.returns.end(), 0.0)
                              / static_cast<double>(one.returns.size()));
  const auto left = scored_checkpoints(folder / "checkpoints");
  REQUIRE(!left.empty());
  CHECK(left.size() <= 2);
  double kept = -1;
  for (const auto& one : left)
    if (one.evaluation_return)
      kept = std::max(kept, *one.evaluation_return);
  CHECK(kept == best);
  for (const auto& one : left) {
    const auto path = folder / "checkpoints" / std::to_string(one.updates);
    verify_checkpoint(path);
    const auto state = read_manifest(path).state();
    if (state.evaluated()) // deterministic: no updates between the evaluation and its checkpoint
      CHECK(state.evaluation_updates() == state.updates());
  }
}

TEST_CASE("A checkpoint that cannot be written is logged, and the run continues") {
  const TemporaryFolder folder;
  auto config = free_run(20'000);
  config.checkpoint.minutes = 0.002;
  const fs::path checkpoints = folder / "checkpoints";
  int failures = 0;
  bool in_the_way = false;
  const RunCallbacks callbacks{.progress =
                                   [&](const Progress& progress) {
                                     if (in_the_way || failures > 0 || progress.updates < 50)
                                       return;
                                     if (fs::exists(checkpoints))
                                       fs::rename(checkpoints, folder / "aside");
                                     std::ofstream(checkpoints) << "no folder";
                                     in_the_way = true;
                                   },
                               .evaluated = {},
                               .log =
                                   [&](const std::string& level, const std::string& text) {
                                     if (level != "error")
                                       return;
                                     CHECK(text.find("checkpoints") != std::string::npos);
                                     CHECK(text.find("training continues") != std::string::npos);
                                     if (++failures < 2)
                                       return;
                                     fs::remove(checkpoints);
                                     if (fs::exists(folder / "aside"))
                                       fs::rename(folder / "aside", checkpoints);
                                   },
                               .episode = {}};
  const std::atomic<bool> stop = false;
  const RunResult result = run(config, folder.path(), {}, {}, callbacks, stop);
  REQUIRE(result.error == "");
  CHECK(failures == 2);
  verify_checkpoint(result.checkpoint);
}

} // namespace
} // namespace troupe::actors
