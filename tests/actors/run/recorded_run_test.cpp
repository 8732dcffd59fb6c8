// Runs without environment actors: replay is filled with recorded episodes.
#include "replay/recordings/recording.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/learner/agents/small_agent.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Ten episodes of a pole that starts upright and is pushed at random.
struct Recorded {
  TemporaryFolder folder;
  std::filesystem::path path = folder / "episodes";

  explicit Recorded(std::int64_t choices) {
    replay::RecordingSpec spec{.frame = {"state", env::ElementType::float32, {5}},
                               .action_size = 1};
    if (choices > 0) {
      spec.frame.shape = {4};
      spec.action_choices = {choices};
    }
    replay::RecordingWriter writer(path, spec);
    std::mt19937 random(5);
    const auto frame = [&] {
      std::vector<float> state(static_cast<std::size_t>(spec.frame.shape[0]));
      for (float& x : state)
        x = static_cast<float>(random() % 1000) / 1000;
      const auto bytes = std::as_bytes(std::span(state));
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    for (int i = 0; i < 10; ++i) {
      replay::Episode episode(spec);
      episode.begin(frame());
      for (int step = 0; step < 60; ++step)
        episode.append(std::vector<float>{static_cast<float>(random() % 2)}, 1, 1, frame());
      writer.add(episode);
    }
    writer.commit();
  }

  RunConfig run(const learner::AgentKind& kind, std::int64_t updates) const {
    RunConfig config = small(0);
    if (kind.actions == learner::ActionKind::choice)
      config.environment.task = "CartPole-v1";
    config.agent = learner::small_agent(kind);
    config.replay.n_step = 1;
    config.recording = path;
    config.actors.environment = 0;
    config.stop.updates = updates;
    return config;
  }
};

bool learns_from_records(const learner::Agent& agent) {
  return agent.storage().sequence_steps == 0;
}

} // namespace

TEST_CASE("Every agent of transitions learns from recorded episodes and resumes exactly") {
  for (const learner::AgentKind& kind : learner::agent_kinds()) {
    CAPTURE(kind.name);
    if (!kind.states || !learns_from_records(*learner::small_agent(kind)))
      continue;
    const Recorded recorded(kind.actions == learner::ActionKind::choice ? 2 : 0);
    const TemporaryFolder whole, parts;
    const RunResult a = play(recorded.run(kind, 150), whole.path());
    REQUIRE(a.error == "");
    CHECK(a.progress.updates == 150);
    CHECK(a.progress.inserts == 600);
    CHECK(a.progress.environment_steps == 0);
    const RunResult half = play(recorded.run(kind, 100), parts.path());
    REQUIRE(half.error == "");
    const RunResult b = play(recorded.run(kind, 150), parts.path(), half.checkpoint);
    REQUIRE(b.error == "");
    check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
    check_equal(a.checkpoint, b.checkpoint, "optimizer.safetensors");
  }
}

TEST_CASE("Free runs on recorded episodes with two replicas, priorities and evaluations end at "
          "their last update") {
  const Recorded recorded(0);
  const TemporaryFolder folder;
  RunConfig config = recorded.run(*learner::find_agent("td3"), 300);
  config.deterministic = false;
  config.learner.replicas = 2;
  config.replay.sampler = "prioritized";
  config.evaluation.period = 100;
  config.evaluation.episodes = 1;
  config.checkpoint.replay = false;
  const RunResult half = play(config, folder.path());
  REQUIRE(half.error == "");
  CHECK(half.progress.updates == 300);
  CHECK(half.progress.priorities > 0);
  config.stop.updates = 400;
  const RunResult all = play(config, folder.path(), half.checkpoint);
  REQUIRE(all.error == "");
  CHECK(all.progress.updates == 400);
  CHECK(all.progress.samples > half.progress.samples);  // of both sessions
  CHECK(all.progress.inserts == half.progress.inserts); // of the same recording
}

TEST_CASE("Settings that do not fit a recording are refused") {
  const Recorded recorded(0);
  const TemporaryFolder folder;
  RunConfig config = recorded.run(*learner::find_agent("td3"), 10);
  const auto error_of = [&](const RunConfig& wrong) { return play(wrong, folder.path()).error; };
  RunConfig small_replay = config;
  small_replay.replay.capacity_items = 100;
  CHECK(error_of(small_replay).find("replay.capacity_items") != std::string::npos);
  RunConfig many_shards = config;
  many_shards.replay.shards = 11;
  many_shards.deterministic = false;
  CHECK(error_of(many_shards).find("replay.shards") != std::string::npos);
  RunConfig other_task = config;
  other_task.environment.task = "pendulum_swingup";
  CHECK(error_of(other_task).find("does not fit") != std::string::npos);
  RunConfig no_folder = config;
  no_folder.recording = folder / "absent";
  CHECK(error_of(no_folder).find("absent is not a recording") != std::string::npos);
  config.stop.updates = 0;
  CHECK_THROWS_WITH_AS(play(config, folder.path()), doctest::Contains("stop.updates"),
                       std::invalid_argument);
  config.stop.updates = 10;
  config.agent = learner::small_agent(*learner::find_agent("mrq"));
  CHECK_THROWS_WITH_AS(play(config, folder.path()), doctest::Contains("replay.n_step"),
                       std::invalid_argument);
  config.replay.n_step = RunConfig().replay.n_step;
  config.agent = learner::small_agent(*learner::find_agent("ppo"));
  CHECK_THROWS_WITH_AS(play(config, folder.path()), doctest::Contains("recording.path"),
                       std::invalid_argument);
}
