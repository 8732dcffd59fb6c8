#include "tests/doctest_torch.hpp"

#include <atomic>
#include <filesystem>
#include <unistd.h>

#include "actors/roles/checkpoint.hpp"
#include "actors/run/checkpointer_actor.hpp"
#include "actors/run/run.hpp"
#include "collectives/communicator.hpp"
#include "learner/device/safetensors.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

TEST_CASE("A repeated deterministic run gives the same parameters bit for bit") {
  const TemporaryFolder first, second;
  const RunResult a = play(small(4000), first.path());
  const RunResult b = play(small(4000), second.path());
  REQUIRE(a.error == "");
  REQUIRE(b.error == "");
  CHECK(a.progress.updates > 100);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
  check_equal(a.checkpoint, b.checkpoint, "optimizer.safetensors");
  CHECK(a.evaluation.returns == b.evaluation.returns);
}

TEST_CASE("A run reports the distributions of actions and of each layer at its evaluations") {
  auto config = small(4000);
  config.evaluation.period = 1500;
  config.evaluation.episodes = 1;
  const TemporaryFolder folder;
  const std::atomic<bool> stop = false;
  std::vector<Distributions> told;
  const RunResult result =
      run(config, folder.path(), {}, {},
          {.distributions = [&](const Distributions& made) { told.push_back(made); }}, stop);
  REQUIRE(result.error == "");
  REQUIRE(told.size() >= 1);
  const auto& histograms = told.back().histograms;
  REQUIRE(histograms.contains("actions"));
  CHECK(histograms.at("actions").minimum >= -1);
  CHECK(histograms.at("actions").maximum <= 1);
  const auto saved = learner::read_safetensors(result.checkpoint / "learner.safetensors").tensors;
  std::size_t layers = 0, gradients = 0;
  for (const auto& [name, tensor] : saved)
    if (name.find("target") == std::string::npos) {
      INFO(name);
      REQUIRE(histograms.contains("parameters/" + name));
      CHECK(histograms.at("parameters/" + name).count == tensor.numel());
      ++layers;
      gradients += histograms.count("gradient_means/" + name);
    }
  CHECK(layers >= 6);
  CHECK(gradients == layers);
}

TEST_CASE("A deterministic run gives the same parameters with any number of environment threads") {
  auto config = small(6000);
  config.actors.environments_per_actor = 3;
  const TemporaryFolder first, second;
  const RunResult a = play(config, first.path());
  config.actors.threads_per_actor = 3;
  const RunResult b = play(config, second.path());
  REQUIRE(a.error == "");
  REQUIRE(b.error == "");
  CHECK(a.progress.updates > 100);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
  CHECK(a.progress.updates == b.progress.updates);
}

TEST_CASE("A resumed deterministic run equals an uninterrupted one") {
  const TemporaryFolder whole, parts;
  const RunResult a = play(small(4000), whole.path());
  const RunResult half = play(small(2400), parts.path());
  REQUIRE(half.error == "");
  CHECK(half.progress.updates > 10);
  CHECK(half.progress.updates < a.progress.updates);
  const RunResult b = play(small(4000), parts.path(), half.checkpoint);
  REQUIRE(b.error == "");
  CHECK(a.progress.updates == b.progress.updates);
  CHECK(a.progress.environment_steps == b.progress.environment_steps);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
  check_equal(a.checkpoint, b.checkpoint, "optimizer.safetensors");
}

TEST_CASE("Compression changes no bit of a deterministic run, even across a resumption") {
  const TemporaryFolder plain, encoded;
  const RunResult a = play(small(4000), plain.path());
  auto config = small(2400);
  config.replay.compression = "zstd";
  config.learner.gather_threads = 3;
  const RunResult half = play(config, encoded.path());
  REQUIRE(half.error == "");
  config.stop.environment_steps = 4000;
  const RunResult b = play(config, encoded.path(), half.checkpoint);
  REQUIRE(b.error == "");
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
}

TEST_CASE("A run with most steps on disk gives the same result as one in memory") {
  auto config = small(3200);
  config.environment.pixels = env::PixelOptions{.height = 64, .width = 64, .grey = true};
  config.environment.frame_stack = 3;
  const TemporaryFolder memory, disk;
  const RunResult a = play(config, memory.path());
  REQUIRE(a.error == "");
  config.replay.capacity_bytes = 1'000'000;
  config.replay.disk_bytes = 100'000'000;
  config.replay.disk_folder = disk.path() / "spill";
  const RunResult b = play(config, disk.path());
  REQUIRE(b.error == "");
  CHECK(a.progress.updates > 50);
  CHECK(b.progress.replay_items == a.progress.replay_items);
  CHECK(b.progress.replay_disk_bytes > 100'000);
  CHECK(a.progress.replay_disk_bytes == 0);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
}

TEST_CASE("A run with a full spill disk logs how many chunks it could not write") {
  auto config = small(3200);
  config.environment.pixels = env::PixelOptions{.height = 64, .width = 64, .grey = true};
  config.environment.frame_stack = 3;
  config.replay.capacity_bytes = 1'000'000;
  config.replay.disk_bytes = 100'000;
  const TemporaryFolder folder;
  config.replay.disk_folder = folder.path() / "spill";
  std::string warnings;
  RunCallbacks callbacks;
  callbacks.log = [&](const std::string& level, const std::string& text) {
    if (level == "warning")
      warnings += text + "\n";
  };
  const std::atomic<bool> stop = false;
  const RunResult result = run(config, folder.path(), {}, {}, callbacks, stop);
  REQUIRE(result.error == "");
  CHECK(result.progress.replay_failed_spills > 0);
  CAPTURE(warnings);
  CHECK(warnings.find("could not be written to disk, and items were removed instead: ")
        != std::string::npos);
  CHECK(warnings.find("max_disk_bytes is 50000") != std::string::npos);
}

TEST_CASE("A free run continues while its checkpoints are written one after another") {
  auto config = small(40'000);
  config.deterministic = false;
  config.checkpoint.minutes = 0.002;
  const TemporaryFolder folder;
  std::vector<std::string> complaints;
  RunCallbacks callbacks;
  callbacks.log = [&](const std::string& level, const std::string& text) {
    if (level == "error")
      complaints.push_back(text);
  };
  const std::atomic<bool> stop = false;
  const RunResult result = run(config, folder.path(), {}, {}, callbacks, stop);
  REQUIRE(result.error == "");
  CHECK(complaints.empty());
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(folder.path() / "checkpoints")) {
    verify_checkpoint(entry.path());
    ++found;
  }
  CHECK(found == 2);
  const RunResult more = play(config, folder.path(), result.checkpoint);
  CHECK(more.error == "");
}

TEST_CASE("Two replicas of a deterministic run repeat the same updates") {
  auto config = small(3000);
  config.learner.replicas = 2;
  const TemporaryFolder first, second;
  const RunResult a = play(config, first.path());
  const RunResult b = play(config, second.path());
  REQUIRE(a.error == "");
  REQUIRE(b.error == "");
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
}

TEST_CASE("A free run trains, evaluates and writes a checkpoint that resumes with its items") {
  auto config = small(6000);
  config.deterministic = false;
  config.evaluation.period = 2000;
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  int evaluations = 0;
  int episodes = 0;
  RunCallbacks callbacks;
  callbacks.evaluated = [&](const Evaluated& e) {
    ++evaluations;
    CHECK(e.returns.size() >= 1);
  };
  callbacks.episode = [&](std::int64_t, double, std::int64_t length) {
    ++episodes;
    CHECK(length == 1000);
  };
  const RunResult result = run(config, folder.path(), {}, {}, callbacks, stop);
  REQUIRE(result.error == "");
  CHECK(result.progress.environment_steps == 6000);
  CHECK(result.progress.updates > 50);
  CHECK(result.evaluation.final);
  CHECK(evaluations >= 1);
  CHECK(episodes >= 2);

  config.stop.environment_steps = 8000;
  const RunResult more = run(config, folder.path(), result.checkpoint, {}, {}, stop);
  REQUIRE(more.error == "");
  CHECK(more.progress.updates > result.progress.updates);
  CHECK(more.progress.replay_items > result.progress.replay_items);
}

TEST_CASE("A run whose environment actors do not divide evenly among its shards completes") {
  RunConfig config = small(6000);
  config.deterministic = false;
  config.actors.environment = 3; // the first shard gets the items of two actors, the second of one
  config.replay.shards = 2;
  config.replay.error_buffer = 64;
  const TemporaryFolder folder;
  const std::atomic<bool> stop = false;
  const RunResult result = run(config, folder.path(), {}, {}, {}, stop);
  REQUIRE(result.error == "");
  CHECK(result.progress.environment_steps >= 6000);
}

RunConfig small_prioritized(std::int64_t environment_steps) {
  RunConfig config = small(environment_steps);
  config.replay.sampler = "prioritized";
  config.replay.importance_updates = 400;
  return config;
}

TEST_CASE("A deterministic run with priorities repeats bit for bit, even when interrupted") {
  const TemporaryFolder first, second, parts;
  const RunResult a = play(small_prioritized(4000), first.path());
  const RunResult b = play(small_prioritized(4000), second.path());
  REQUIRE(a.error == "");
  REQUIRE(b.error == "");
  CHECK(a.progress.updates > 100);
  // Each row of each batch got a priority, except for items that had been removed.
  CHECK(a.progress.priorities == a.progress.updates * 32);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
  check_equal(a.checkpoint, b.checkpoint, "optimizer.safetensors");

  const RunResult half = play(small_prioritized(2400), parts.path());
  REQUIRE(half.error == "");
  CHECK(half.progress.updates < a.progress.updates);
  const RunResult resumed = play(small_prioritized(4000), parts.path(), half.checkpoint);
  REQUIRE(resumed.error == "");
  check_equal(a.checkpoint, resumed.checkpoint, "learner.safetensors");
  check_equal(a.checkpoint, resumed.checkpoint, "optimizer.safetensors");

  const TemporaryFolder uniform;
  const RunResult other = play(small(4000), uniform.path());
  REQUIRE(other.error == "");
  CHECK(other.progress.priorities == 0);
  const auto tensors = learner::read_safetensors(a.checkpoint / "learner.safetensors").tensors;
  const auto others = learner::read_safetensors(other.checkpoint / "learner.safetensors").tensors;
  bool same = true;
  for (const auto& [name, tensor] : tensors)
    same = same && at::equal(tensor, others.at(name));
  CHECK_FALSE(same); // priorities matter
}

TEST_CASE("Two replicas with priorities repeat the same updates") {
  auto config = small_prioritized(3000);
  config.learner.replicas = 2;
  const TemporaryFolder first, second;
  const RunResult a = play(config, first.path());
  const RunResult b = play(config, second.path());
  REQUIRE(a.error == "");
  REQUIRE(b.error == "");
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
}

TEST_CASE("A free run with priorities trains and resumes with another sampler and limiter") {
  auto config = small_prioritized(6000);
  config.deterministic = false;
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  const RunResult result = run(config, folder.path(), {}, {}, {}, stop);
  REQUIRE(result.error == "");
  CHECK(result.progress.updates > 50);
  CHECK(result.progress.priorities > 30 * result.progress.updates);

  config.stop.environment_steps = 8000;
  config.replay.sampler = "uniform";
  config.replay.samples_per_insert = 4;
  config.replay.max_times_sampled = 1000;
  std::vector<std::string> warnings;
  RunCallbacks callbacks;
  callbacks.log = [&](const std::string& level, const std::string& text) {
    if (level == "warning")
      warnings.push_back(text);
  };
  const RunResult more = run(config, folder.path(), result.checkpoint, {}, callbacks, stop);
  REQUIRE(more.error == "");
  CHECK(more.progress.updates > result.progress.updates);
  REQUIRE(warnings.size() == 2); // one for each shard
  CHECK(warnings[0].find("replay.sampler was prioritized (exponent 0.6) and is uniform, "
                         "replay.max_times_sampled was 0 and is 1000")
        != std::string::npos);
  CHECK(warnings[0].find("replay.samples_per_insert was 8 and is 4") != std::string::npos);
}

TEST_CASE("Items sampled max_times_sampled times are removed, and the run continues") {
  auto config = small(6000);
  config.deterministic = false;
  config.replay.max_times_sampled = 8;
  const TemporaryFolder folder;
  const std::atomic<bool> stop = false;
  const RunResult result = run(config, folder.path(), {}, {}, {}, stop);
  REQUIRE(result.error == "");
  CHECK(result.progress.updates > 50);
  CHECK(result.progress.replay_items < result.progress.inserts);
}

TEST_CASE("A stop request ends the run with a checkpoint and without the final evaluation") {
  auto config = small(100'000'000);
  config.deterministic = false;
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  RunCallbacks callbacks;
  callbacks.progress = [&](const Progress& p) {
    if (p.updates > 20)
      stop = true;
  };
  const RunResult result = run(config, folder.path(), {}, {}, callbacks, stop);
  REQUIRE(result.error == "");
  CHECK(result.interrupted);
  CHECK(result.evaluation.returns.empty());
  CHECK(read_manifest(result.checkpoint).state().updates() > 20);
}

TEST_CASE("A failed run leaves no partially written checkpoint") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "checkpoints/.7.partial/replay/shard-0");
  auto config = small(2400);
  auto agent = small_d4pg();
  agent.critic_learning_rate = 1e30;
  config.agent = learner::make_d4pg_agent(agent);
  const RunResult result = play(config, folder.path());
  CAPTURE(result.error);
  CHECK(result.error.find("is NaN or infinite") != std::string::npos);
  CHECK(fs::is_empty(folder.path() / "checkpoints"));
}

TEST_CASE("Configuration errors are reported before a run starts") {
  const TemporaryFolder folder;
  auto config = small(1000);
  config.learner.replicas = 3;
  CHECK_THROWS_WITH_AS(play(config, folder.path()), doctest::Contains("learner.replicas 3"),
                       std::invalid_argument);
  config = small(1000);
  config.environment.task = "cartpole_balanse";
  CHECK_THROWS_WITH_AS(play(config, folder.path()), doctest::Contains("cartpole_balance"),
                       std::invalid_argument);
  config = small(1000);
  config.replay.minimum_items = 1 << 30;
  CHECK_THROWS_WITH_AS(play(config, folder.path()), doctest::Contains("replay.minimum_items"),
                       std::invalid_argument);
  config = small(1000);
  config.learner.device = "cuda";
  config.learner.replicas = 2;
  CHECK_THROWS_WITH_AS(
      play(config, folder.path()),
      doctest::Contains("learner.device \"cuda\" with learner.replicas 2 needs one "
                        "process per replica; add --processes"),
      std::invalid_argument);
  config.learner.device = "cpu";
  CHECK_THROWS_WITH_AS(check_run(config, true),
                       doctest::Contains("the order of the replicas' samples is not fixed"),
                       std::invalid_argument);
  config.learner.device = "cuda";
  config.learner.replicas = 1;
  if (collectives::cuda_device_count() == 0)
    CHECK_THROWS_WITH_AS(play(config, folder.path()), doctest::Contains("; or choose auto or cpu"),
                         std::invalid_argument);
}

TEST_CASE("A truncated checkpoint is refused, and the error names the file") {
  const TemporaryFolder folder;
  const RunResult result = play(small(2400), folder.path());
  REQUIRE(result.error == "");
  fs::resize_file(result.checkpoint / "learner.safetensors", 100);
  CHECK_THROWS_WITH(play(small(4000), folder.path(), result.checkpoint),
                    doctest::Contains("learner.safetensors should have"));
}

} // namespace
} // namespace troupe::actors
