#include "tests/doctest_torch.hpp"

#include <fstream>

#include "actors/roles/checkpoint.hpp"
#include "actors/run/checkpointer_actor.hpp"
#include "actors/run/run.hpp"
#include "learner/device/safetensors.hpp"
#include "learner/parameter_server/parameter_server_snapshot.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

RunConfig with_servers(std::int64_t environment_steps, const std::string& strategy, int replicas,
                       int servers = 1) {
  RunConfig config = small(environment_steps);
  config.learner.strategy = strategy;
  config.learner.replicas = replicas;
  config.learner.parameter_servers = servers;
  return config;
}

/// The same run without updates. At its end it saves what it loaded.
RunConfig waiting(RunConfig config) {
  config.replay.minimum_items = config.replay.capacity_items;
  return config;
}

/// Checks that the servers' files of both checkpoints hold the same tensors, except for the record
/// of their workers.
void check_equal_servers(const fs::path& a, const fs::path& b, int servers) {
  for (int i = 0; i < servers; ++i) {
    const auto file = fs::path("servers") / ("shard-" + std::to_string(i) + ".safetensors");
    const auto left = learner::read_safetensors(a / file).tensors;
    const auto right = learner::read_safetensors(b / file).tensors;
    REQUIRE(left.size() == right.size());
    REQUIRE(left.size() > 6);
    for (const auto& [name, tensor] : left)
      if (!name.ends_with("/header")) {
        INFO(name);
        CHECK(at::equal(tensor, right.at(name)));
      }
  }
}

TEST_CASE("A resumed deterministic run with parameter servers equals an uninterrupted one") {
  struct Case {
    const char* strategy;
    int replicas, servers;
  };
  for (const auto& [strategy, replicas, servers] :
       {Case{"parameter_server staleness_rate=inverse_plus_one", 1, 1},
        Case{"backup_workers backup_workers=0", 1, 2}, Case{"sync_groups sync_groups=1", 1, 1},
        Case{"central_storage", 2, 2}}) {
    CAPTURE(strategy);
    const TemporaryFolder whole, parts;
    const RunResult a = play(with_servers(3200, strategy, replicas, servers), whole.path());
    REQUIRE(a.error == "");
    const RunResult half = play(with_servers(2000, strategy, replicas, servers), parts.path());
    REQUIRE(half.error == "");
    CHECK(half.progress.updates > 10);
    CHECK(half.progress.updates < a.progress.updates);
    const RunResult b =
        play(with_servers(3200, strategy, replicas, servers), parts.path(), half.checkpoint);
    REQUIRE(b.error == "");
    CHECK(a.progress.updates == b.progress.updates);
    check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
    check_equal(a.checkpoint, b.checkpoint, "optimizer.safetensors");
    check_equal_servers(a.checkpoint, b.checkpoint, servers);
    CHECK(a.evaluation.returns == b.evaluation.returns);
  }
}

TEST_CASE("Asynchronous servers restore every bit on resumption, and the run continues") {
  auto config = with_servers(4000, "parameter_server max_staleness=20", 3, 2);
  config.deterministic = false;
  const TemporaryFolder folder;
  const RunResult first = play(config, folder.path());
  REQUIRE(first.error == "");
  CHECK(first.progress.learner.at("staleness_max") >= 1);
  CHECK(first.progress.learner.at("staleness_mean") >= 0);
  CHECK(first.progress.learner.at("learning_rate_scale") == 1);
  const TemporaryFolder other;
  const RunResult idle = play(waiting(config), other.path(), first.checkpoint);
  REQUIRE(idle.error == "");
  CHECK(idle.progress.updates == first.progress.updates);
  check_equal_servers(first.checkpoint, idle.checkpoint, 2);
  config.stop.environment_steps = 6000;
  config.learner.replicas = 2; // other numbers of replicas and of shards
  config.learner.parameter_servers = 3;
  const RunResult more = play(config, folder.path(), first.checkpoint);
  REQUIRE(more.error == "");
  CHECK(more.progress.updates > first.progress.updates);
  CHECK(fs::exists(more.checkpoint / "servers" / "shard-2.safetensors"));
}

TEST_CASE(
    "State saved by one number of parameter servers is restored bit for bit by another number") {
  auto config = with_servers(2400, "central_storage", 2, 3);
  const TemporaryFolder folder, other;
  const RunResult first = play(config, folder.path());
  REQUIRE(first.error == "");
  config.learner.parameter_servers = 1;
  const RunResult idle = play(waiting(config), other.path(), first.checkpoint);
  REQUIRE(idle.error == "");
  CHECK(idle.progress.updates == first.progress.updates);
  const auto read = [](const fs::path& checkpoint, int servers) {
    std::vector<learner::TensorMap> critic;
    for (int i = 0; i < servers; ++i) {
      auto& one = critic.emplace_back();
      for (const auto& [name, tensor] :
           learner::read_safetensors(checkpoint / "servers"
                                     / ("shard-" + std::to_string(i) + ".safetensors"))
               .tensors)
        if (name.starts_with("0/"))
          one[name.substr(2)] = tensor;
    }
    return learner::reshard(critic, 1).front();
  };
  const auto before = read(first.checkpoint, 3), after = read(idle.checkpoint, 1);
  REQUIRE(before.size() == after.size());
  for (const auto& [name, tensor] : before) {
    INFO(name);
    CHECK(at::equal(tensor, after.at(name)));
  }
}

TEST_CASE("Backup workers and sync groups pause for a checkpoint without deadlock") {
  for (const char* strategy : {"backup_workers backup_workers=1", "sync_groups sync_groups=3"}) {
    CAPTURE(strategy);
    auto config = with_servers(12'000, strategy, 3);
    auto agent = small_d4pg();
    agent.batch_size = 36;
    config.agent = learner::make_d4pg_agent(agent);
    config.deterministic = false;
    config.checkpoint.minutes = 0.01;
    const TemporaryFolder folder;
    const RunResult result = play(config, folder.path());
    REQUIRE(result.error == "");
    const RunResult more = [&] {
      config.stop.environment_steps = 14'000;
      return play(config, folder.path(), result.checkpoint);
    }();
    REQUIRE(more.error == "");
    CHECK(more.progress.updates > result.progress.updates);
    CHECK(more.progress.learner.contains("dropped_gradients"));
  }
}

TEST_CASE("A truncated, changed or missing part of a parameter server is named") {
  const auto config = with_servers(2000, "central_storage", 1, 2);
  const TemporaryFolder folder;
  const RunResult result = play(config, folder.path());
  REQUIRE(result.error == "");
  const fs::path part = result.checkpoint / "servers" / "shard-1.safetensors";
  const std::string good = read_text(part);
  const auto resumed = [&] { return play(config, folder.path(), result.checkpoint).error; };
  const auto write = [&](const std::string& bytes) {
    std::ofstream(part, std::ios::binary | std::ios::trunc) << bytes;
  };
  write(good.substr(0, good.size() / 2));
  CHECK_THROWS_WITH(resumed(), doctest::Contains("shard-1.safetensors should have"));
  std::string changed = good;
  changed[changed.find("\"shards\":\"") + 10] = '7'; // as if another shard were missing
  write(changed);
  CHECK_THROWS_WITH(verify_checkpoint(result.checkpoint),
                    doctest::Contains("shard-1.safetensors is damaged"));
  CHECK(resumed().find("shard-1.safetensors' is shard \"1\" of \"7\"") != std::string::npos);
  fs::remove(part);
  CHECK_THROWS_WITH(resumed(), doctest::Contains("shard-1.safetensors should have"));
  write(good);
  CHECK(resumed() == "");
}

TEST_CASE(
    "Parameter servers that a checkpoint lacks or a run does not use are refused with a remedy") {
  const TemporaryFolder plain, served;
  const RunResult without = play(small(2000), plain.path());
  REQUIRE(without.error == "");
  CHECK_THROWS_WITH_AS(
      play(with_servers(3000, "parameter_server", 1), plain.path(), without.checkpoint),
      doctest::Contains("was written without any"), std::invalid_argument);
  const RunResult with = play(with_servers(2000, "parameter_server", 1), served.path());
  REQUIRE(with.error == "");
  CHECK_THROWS_WITH_AS(play(small(3000), served.path(), with.checkpoint),
                       doctest::Contains("resume with the strategy it was trained with"),
                       std::invalid_argument);
  auto config = small(2000);
  config.learner.parameter_servers = 2;
  CHECK_THROWS_WITH_AS(play(config, plain.path()), doctest::Contains("learner.parameter_servers 2"),
                       std::invalid_argument);
}

} // namespace
} // namespace troupe::actors
