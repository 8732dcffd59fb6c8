#pragma once
// Runs of a few seconds, and comparisons of two of them.

#include <atomic>
#include <filesystem>
#include <functional>

#include "actors/run/run.hpp"
#include "learner/agents/d4pg/d4pg.hpp"
#include "learner/device/safetensors.hpp"
#include "tests/doctest_torch.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {

inline learner::D4pgConfig small_d4pg() {
  return {.policy_layers = {32, 32}, .critic_layers = {32, 32}, .batch_size = 32};
}

inline RunConfig small(std::int64_t environment_steps) {
  RunConfig config;
  config.deterministic = true;
  config.environment.task = "cartpole_balance";
  config.environment.action_repeat = 4;
  config.agent = learner::make_d4pg_agent(small_d4pg());
  config.replay.shards = 2;
  config.replay.minimum_items = 200;
  config.replay.samples_per_insert = 8;
  config.actors.random_steps = 200;
  config.evaluation.period = 0;
  config.evaluation.final_episodes = 1;
  config.checkpoint.minutes = 0;
  config.stop.environment_steps = environment_steps;
  return config;
}

inline RunResult play(const RunConfig& config, const std::filesystem::path& folder,
                      const std::filesystem::path& resume = {}) {
  const std::atomic<bool> stop = false;
  return run(config, folder, resume, {}, {}, stop);
}

inline void check_equal_files(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto left = learner::read_safetensors(a).tensors;
  const auto right = learner::read_safetensors(b).tensors;
  REQUIRE(left.size() == right.size());
  for (const auto& [name, tensor] : left) {
    INFO(name);
    REQUIRE(right.contains(name));
    CHECK(at::equal(tensor, right.at(name)));
  }
}

inline void check_equal(const std::filesystem::path& a, const std::filesystem::path& b,
                        const char* file) {
  check_equal_files(a / file, b / file);
}

/// Checks that a deterministic run of `whole` environment steps equals one of `half` steps that is
/// resumed. Returns the result of the uninterrupted run.
inline RunResult check_resumption(const std::function<RunConfig(std::int64_t steps)>& config,
                                  std::int64_t whole, std::int64_t half) {
  const TemporaryFolder uninterrupted, parts;
  const RunResult a = play(config(whole), uninterrupted.path());
  REQUIRE(a.error == "");
  const RunResult before = play(config(half), parts.path());
  REQUIRE(before.error == "");
  CHECK(before.progress.updates > 10);
  CHECK(before.progress.updates < a.progress.updates);
  const RunResult b = play(config(whole), parts.path(), before.checkpoint);
  REQUIRE(b.error == "");
  CHECK(a.progress.updates == b.progress.updates);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
  check_equal(a.checkpoint, b.checkpoint, "optimizer.safetensors");
  return a;
}

} // namespace troupe::actors
