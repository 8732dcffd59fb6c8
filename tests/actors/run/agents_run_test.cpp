// Runs of every agent in the list. The actors know none of them in particular.
#include <atomic>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "learner/acting/policy.hpp"
#include "learner/agents/agent.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/learner/agents/small_agent.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::actors;

namespace {

RunConfig small_with(const learner::AgentKind& kind, std::int64_t environment_steps) {
  RunConfig config = small(environment_steps);
  std::string held;
  for (const char* key : {"noise_hold", "epsilon_hold"})
    if (kind.options->FindFieldByName(key) != nullptr)
      held = std::string(key) + ": 20";
  config.agent = learner::small_agent(kind, held);
  config.learner.training.learning_rate = {
      .schedule = "cosine", .updates = 200, .warmup_updates = 5};
  config.learner.training.resets = {.period = 9};
  if (config.agent->storage().on_policy) {
    config.replay = {};
    config.actors.random_steps = 0;
  } else {
    const bool sequences = config.agent->storage().sequence_steps > 0;
    config.replay.n_step = sequences ? RunConfig().replay.n_step : 1;
    if (sequences) // there are fewer sequences than transitions
      config.replay.minimum_items = 20;
  }
  if (kind.actions == learner::ActionKind::choice)
    config.environment.task = "CartPole-v1";
  if (!kind.states)
    config.environment.pixels = env::PixelOptions{.height = 17, .width = 17, .grey = true};
  return config;
}

} // namespace

namespace {

/// A policy that fails in the first four evaluation episodes.
class FailsFirstEvaluation : public learner::Policy {
public:
  FailsFirstEvaluation(std::unique_ptr<learner::Policy> policy,
                       std::shared_ptr<std::atomic<int>> calls)
      : policy_(std::move(policy)), calls_(std::move(calls)) {}

  std::int64_t parameter_count() const override { return policy_->parameter_count(); }
  void load(std::span<const float> parameters) override { policy_->load(parameters); }
  void act(const learner::Observations& observations, std::span<float> actions) override {
    if (calls_->fetch_add(1) < 4) // one more than the evaluator survives
      throw std::runtime_error("the first evaluation fails");
    policy_->act(observations, actions);
  }
  void explore(const learner::Observations& observations, const learner::Exploration& exploration,
               std::span<float> actions) override {
    policy_->explore(observations, exploration, actions);
  }
  void save_exploration(std::vector<std::byte>& out) const override {
    policy_->save_exploration(out);
  }
  std::span<const std::byte> load_exploration(std::span<const std::byte> in) override {
    return policy_->load_exploration(in);
  }

private:
  std::unique_ptr<learner::Policy> policy_;
  std::shared_ptr<std::atomic<int>> calls_; // of act(), which only the evaluator calls
};

/// An agent with such policies.
class FailingEvaluation : public learner::Agent {
public:
  FailingEvaluation(learner::AgentPtr agent, std::shared_ptr<std::atomic<int>> calls)
      : agent_(std::move(agent)), calls_(std::move(calls)) {}

  learner::Storage storage() const override { return agent_->storage(); }
  std::int64_t batch_size() const override { return agent_->batch_size(); }
  std::unique_ptr<learner::Policy>
  make_policy(const replay::TransitionSpec& transitions) const override {
    return std::make_unique<FailsFirstEvaluation>(agent_->make_policy(transitions), calls_);
  }
  std::unique_ptr<learner::Replica>
  make_replica(const replay::TransitionSpec& transitions) const override {
    return agent_->make_replica(transitions);
  }

private:
  learner::AgentPtr agent_;
  std::shared_ptr<std::atomic<int>> calls_;
};

} // namespace

TEST_CASE("A deterministic run whose evaluator dies repeats the evaluation with the same result") {
  RunConfig config = small(4000);
  config.evaluation.period = 1500;
  config.evaluation.episodes = 1;
  std::vector<std::vector<double>> returns;
  const RunCallbacks callbacks{
      .evaluated = [&](const Evaluated& one) { returns.push_back(one.returns); }};
  const std::atomic<bool> stop = false;
  const TemporaryFolder whole, restarted;
  const RunResult a = run(config, whole.path(), {}, {}, callbacks, stop);
  REQUIRE(a.error == "");
  const auto expected = std::exchange(returns, {});
  CHECK(expected.size() > 1);

  const auto calls = std::make_shared<std::atomic<int>>(0);
  config.agent = std::make_shared<const FailingEvaluation>(config.agent, calls);
  const RunResult b = run(config, restarted.path(), {}, {}, callbacks, stop);
  REQUIRE(b.error == "");
  CHECK(calls->load() > 4);
  CHECK(returns == expected);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
}

TEST_CASE("A resumed deterministic run of any agent equals an uninterrupted one") {
  for (const learner::AgentKind& kind : learner::agent_kinds()) {
    CAPTURE(kind.name);
    check_resumption([&](std::int64_t steps) { return small_with(kind, steps); }, 2400, 1600);
  }
}

TEST_CASE("A resumed deterministic run with running returns equals an uninterrupted one") {
  const learner::AgentKind& kind = *learner::find_agent("sac");
  const auto spherical = [&](std::int64_t steps) {
    RunConfig config = small_with(kind, steps);
    config.agent = learner::small_agent(kind, "spherical: true policy_blocks: 1 critic_blocks: 1 "
                                              "policy_layers: 16 critic_layers: 16");
    return config;
  };
  check_resumption(spherical, 2400, 1600);
}

TEST_CASE("A critic is compared with evaluation returns without changing any parameter") {
  for (const bool in_rounds : {true, false}) {
    CAPTURE(in_rounds);
    RunConfig config = small_with(*learner::find_agent("td3"), 1200);
    config.deterministic = in_rounds;
    config.evaluation.period = 600;
    config.evaluation.episodes = 1;
    config.replay.discount = 0.9; // the episodes have 250 steps
    std::vector<Evaluated> evaluations;
    const RunCallbacks callbacks{
        .evaluated = [&](const Evaluated& one) { evaluations.push_back(one); }};
    const std::atomic<bool> stop = false;
    const auto played = [&](std::int64_t period, const std::filesystem::path& folder) {
      evaluations.clear();
      config.learner.training.diagnostics_period = period;
      return run(config, folder, {}, {}, callbacks, stop);
    };
    const TemporaryFolder compared, plain;
    const RunResult a = played(50, compared.path());
    REQUIRE(a.error == "");
    REQUIRE(evaluations.size() >= (in_rounds ? 2 : 1));
    for (const Evaluated& one : evaluations) {
      REQUIRE(one.metrics.size() == 3);
      for (const char* name : {"q_bias", "q_bias_deviation", "q_return"})
        CHECK(std::isfinite(one.metrics.at(name)));
      CHECK(one.metrics.at("q_return") > 1); // at most 4 per step, 40 per return
      CHECK(one.metrics.at("q_return") < 40);
    }
    const RunResult b = played(0, plain.path());
    REQUIRE(b.error == "");
    for (const Evaluated& one : evaluations)
      CHECK(one.metrics.empty());
    if (in_rounds)
      check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
  }
}

TEST_CASE("A resumed deterministic run with pixels and states equals an uninterrupted one") {
  const learner::AgentKind& kind = *learner::find_agent("ppo");
  const auto both = [&](std::int64_t steps) {
    RunConfig config = small_with(kind, steps);
    config.environment.observations = {"velocity", "pixels"};
    config.environment.pixels = env::PixelOptions{.height = 12, .width = 12, .grey = true};
    config.environment.frame_stack = 2;
    return config;
  };
  check_resumption(both, 2400, 1600);
  const TemporaryFolder folder;
  RunConfig refused = both(1600);
  refused.agent = learner::small_agent(*learner::find_agent("td3"));
  refused.replay = small(1).replay;
  CHECK(play(refused, folder.path()).error.find("environment.observations") != std::string::npos);
}

namespace {

RunConfig with_hindsight(std::int64_t environment_steps) {
  RunConfig config = small_with(*learner::find_agent("dqn"), environment_steps);
  config.environment = {.task = "bit_flipping", .options = {"bits=6"}};
  config.replay.hindsight.goals = 4;
  config.replay.samples_per_insert = 2;
  return config;
}

} // namespace

TEST_CASE("A resumed deterministic run with hindsight equals an uninterrupted one") {
  const RunResult result = check_resumption(with_hindsight, 1200, 800);
  CHECK(result.progress.inserts > 3 * 1200);
}

TEST_CASE("A free run with hindsight and two replicas completes") {
  const TemporaryFolder folder;
  RunConfig config = with_hindsight(1200);
  config.deterministic = false;
  config.learner.replicas = 2;
  config.replay.sampler = "prioritized";
  const RunResult result = play(config, folder.path());
  REQUIRE(result.error == "");
  CHECK(result.progress.updates > 10);
}

TEST_CASE("Options that hindsight does not support are refused, and the error names them") {
  const TemporaryFolder folder;
  const auto refused = [&](auto change, const char* words) {
    RunConfig config = with_hindsight(800);
    change(config);
    CHECK_THROWS_WITH_AS(play(config, folder.path()), doctest::Contains(words),
                         std::invalid_argument);
  };
  refused([](RunConfig& config) { config.replay.n_step = 3; }, "replay.n_step is 3");
  refused([](RunConfig& config) { config.environment.frame_stack = 2; }, "frame_stack");
  refused([](RunConfig& config) { config.environment = {.task = "CartPole-v1"}; },
          "CartPole-v1 does not say");
  refused(
      [](RunConfig& config) {
        config.recording = "somewhere";
        config.stop.updates = 10;
      },
      "recording.path");
  refused([](RunConfig& config) { config.replay.hindsight = {.strategy = "final"}; },
          "replay.hindsight.strategy");
  refused(
      [](RunConfig& config) {
        config.agent = learner::small_agent(*learner::find_agent("r2d2"));
        config.replay.n_step = RunConfig().replay.n_step;
      },
      "sequences");
  refused(
      [](RunConfig& config) {
        config.agent = learner::small_agent(*learner::find_agent("sac"), "spherical: true");
      },
      "returns of episodes");
}

TEST_CASE("The newest policy plays every sample of an agent that requires it") {
  const learner::AgentKind& kind = *learner::find_agent("ppo");
  REQUIRE(learner::small_agent(kind)->storage().newest_policy);
  for (const int environments : {3, 4, 8, 20}) { // per actor, of two; a batch has 16 sequences
    CAPTURE(environments);
    const TemporaryFolder folder;
    RunConfig config = small_with(kind, 4000);
    config.deterministic = false;
    config.actors.environments_per_actor = environments;
    double oldest = -1;
    const auto look = [&](const Progress& now) {
      if (const auto age = now.learner.find("sample_age"); age != now.learner.end())
        oldest = std::max(oldest, age->second);
    };
    const RunCallbacks callbacks{.progress = look};
    const std::atomic<bool> stop = false;
    const RunResult result = run(config, folder.path(), {}, {}, callbacks, stop);
    REQUIRE(result.error == "");
    CHECK(result.progress.updates > 10);
    look(result.progress);            // the run may end before its first report
    if (16 % (2 * environments) == 0) // otherwise some sequences are left for the next batch
      CHECK(oldest == 0);
  }
}

TEST_CASE("Every agent trains with two replicas and with a parameter server, off-policy agents "
          "with priorities") {
  for (const learner::AgentKind& kind : learner::agent_kinds()) {
    CAPTURE(kind.name);
    for (const char* strategy : {"multi_worker", "parameter_server"}) {
      CAPTURE(strategy);
      const TemporaryFolder folder;
      RunConfig config = small_with(kind, 1600);
      config.deterministic = false;
      config.learner.replicas = 2;
      config.learner.strategy = strategy;
      const bool prioritized = !config.agent->storage().on_policy;
      if (prioritized)
        config.replay.sampler = "prioritized";
      const RunResult result = play(config, folder.path());
      REQUIRE(result.error == "");
      CHECK(result.progress.updates > (prioritized ? 10 : 5)); // servers: a whole batch each
      CHECK((result.progress.priorities > 0) == prioritized);
    }
  }
}

TEST_CASE(
    "A free run of an on-policy agent uses each item once across evaluations and a resumption") {
  const learner::AgentKind& kind = *learner::find_agent("ppo");
  const TemporaryFolder folder;
  RunConfig config = small_with(kind, 4000);
  config.deterministic = false;
  config.evaluation.period = 1000;
  config.evaluation.episodes = 1;
  const RunResult half = play(config, folder.path());
  REQUIRE(half.error == "");
  const auto used = [](const RunResult& result) {
    CHECK(result.progress.samples == 16 * result.progress.updates);
    CHECK(result.progress.inserts - result.progress.samples < 16);
    return result.progress.updates;
  };
  const auto before = used(half);
  CHECK(before > 20);
  config.stop.environment_steps = 8000;
  const RunResult whole = play(config, folder.path(), half.checkpoint);
  REQUIRE(whole.error == "");
  CHECK(used(whole) > before + 20);
}

TEST_CASE("Keys that the agent determines are refused, and the error names them") {
  const auto refused = [](const char* key, auto change) {
    RunConfig config = small_with(*learner::find_agent("ppo"), 1000);
    change(config);
    CHECK_THROWS_WITH_AS(check_run(config, false), doctest::Contains(key), std::invalid_argument);
  };
  refused("replay.shards", [](RunConfig& c) { c.replay.shards = 2; });
  refused("replay.samples_per_insert", [](RunConfig& c) { c.replay.samples_per_insert = 3; });
  refused("replay.sampler", [](RunConfig& c) { c.replay.sampler = "lifo"; });
  refused("replay.n_step", [](RunConfig& c) { c.replay.n_step = 3; });
  refused("learner.prefetch", [](RunConfig& c) { c.learner.prefetch = 5; });
  refused("actors.random_steps", [](RunConfig& c) { c.actors.random_steps = 10; });
}
