// Runs with several choices, with choices and continuous numbers in one action, and with whole
// episodes as items.
#include "tests/actors/small_run.hpp"

#include <cmath>
#include <cstring>
#include <set>

#include "env/plugin/plugin.hpp"
#include "env/random.hpp"
#include "env/state_bytes.hpp"
#include "learner/agents/impala/impala.hpp"
#include "learner/agents/ppo/ppo.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Episodes of three steps. The last reward is 10 * action[1] + action[0]. action[1] is one of
/// three choices, and action[0] one of four or, with the option `mixed`, a number in [-1, 1].
class Dials final : public env::Environment {
public:
  explicit Dials(const env::Options& options) {
    const bool mixed = options.flag("mixed", false);
    spec_.name = "dials";
    spec_.observations = {{"light", env::ElementType::float64, {2}}};
    spec_.action = {.minimum = {mixed ? -1.0 : 0.0, 0},
                    .maximum = {mixed ? 1.0 : 3.0, 2},
                    .choices = {mixed ? 0 : 4, 3}};
    spec_.episode_steps = 3;
    spec_.control_timestep_seconds = 1;
  }
  const env::EnvironmentSpec& spec() const override { return spec_; }

  env::TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    state_ = {.random = env::Random(seed)};
    observe(observation);
    return {};
  }
  env::TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    observe(observation);
    const bool last = ++state_.steps == spec_.episode_steps;
    return {last ? env::StepType::last : env::StepType::mid, last ? 10 * action[1] + action[0] : 0,
            1};
  }
  void save_state(std::vector<std::byte>& out) const override { env::save_value(out, state_); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    env::load_value(in, state_, "dials");
    return in;
  }

private:
  struct State {
    env::Random random;
    std::int64_t steps = 0;
  };
  void observe(std::span<std::byte> observation) {
    const double light[2] = {state_.random.uniform(), state_.random.uniform()};
    std::memcpy(observation.data(), light, sizeof light);
  }
  env::EnvironmentSpec spec_;
  State state_;
};

RunConfig dials(const learner::AgentPtr& agent, bool mixed, std::int64_t environment_steps) {
  RunConfig config = small(environment_steps);
  config.environment = {.task = "dials", .options = {mixed ? "mixed=true" : "mixed=false"}};
  config.agent = agent;
  config.replay = {};
  config.actors.random_steps = 0;
  return config;
}

/// PPO on whole episodes of at most eight steps.
class Episodic final : public learner::Agent {
public:
  explicit Episodic(bool on_policy, bool newest_policy = false)
      : on_policy_(on_policy), newest_policy_(newest_policy) {}

  learner::Storage storage() const override {
    learner::Storage made = inner_->storage();
    made.on_policy = on_policy_;
    made.newest_policy = newest_policy_;
    made.whole_episodes = true;
    return made;
  }
  std::int64_t batch_size() const override { return inner_->batch_size(); }
  std::unique_ptr<learner::Policy>
  make_policy(const replay::TransitionSpec& transitions) const override {
    return inner_->make_policy(transitions);
  }
  std::unique_ptr<learner::Replica>
  make_replica(const replay::TransitionSpec& transitions) const override {
    return inner_->make_replica(transitions);
  }

private:
  learner::AgentPtr inner_ =
      learner::make_ppo_agent({.layers = {12}, .rollout = 8, .batch_size = 8});
  bool on_policy_;
  bool newest_policy_;
};

} // namespace

TROUPE_ENVIRONMENTS({"dials", "Dials are turned.", env::make_own<Dials>});

TEST_CASE("A resumed deterministic run with several choices, or with mixed actions and an LSTM, "
          "equals an uninterrupted one") {
  for (const bool mixed : {false, true}) {
    CAPTURE(mixed);
    const auto agent = learner::make_ppo_agent(
        {.layers = {12}, .lstm = mixed ? 6 : 0, .rollout = 4, .batch_size = 8});
    check_resumption([&](std::int64_t steps) { return dials(agent, mixed, steps); }, 1200, 800);
  }
  const auto agent =
      learner::make_impala_agent({.layers = {12}, .lstm = 6, .rollout = 4, .batch_size = 8});
  check_resumption([&](std::int64_t steps) { return dials(agent, true, steps); }, 1200, 800);
}

TEST_CASE("Environments receive every choice, and continuous numbers beside choices") {
  for (const bool mixed : {false, true}) {
    CAPTURE(mixed);
    const TemporaryFolder folder;
    const auto agent = learner::make_ppo_agent({.layers = {12}, .rollout = 4, .batch_size = 8});
    std::set<double> first, second;
    const RunCallbacks callbacks{.episode = [&](std::int64_t, double episode_return, std::int64_t) {
      second.insert(std::round(episode_return / 10));
      first.insert(episode_return - 10 * std::round(episode_return / 10));
    }};
    const std::atomic<bool> stop = false;
    const RunResult result = run(dials(agent, mixed, 1200), folder.path(), {}, {}, callbacks, stop);
    REQUIRE(result.error == "");
    CHECK(second == std::set<double>{0, 1, 2});
    if (mixed) {
      CHECK(first.size() > 50);
      CHECK(*first.begin() >= -1);
      CHECK(*first.rbegin() <= 1);
    } else {
      CHECK(first == std::set<double>{0, 1, 2, 3});
    }
  }
}

TEST_CASE("A resumed deterministic run of an agent that stores whole episodes equals an "
          "uninterrupted one") {
  for (const bool on_policy : {true, false}) {
    CAPTURE(on_policy);
    const RunResult result = check_resumption(
        [&](std::int64_t steps) {
          RunConfig config = dials(std::make_shared<const Episodic>(on_policy), true, steps);
          if (!on_policy) {
            config.replay.minimum_items = 20;
            config.replay.samples_per_insert = 2;
          }
          return config;
        },
        1200, 800);
    CHECK(result.progress.inserts > 300); // of 400 episodes; there are 200 sequences
    CHECK(result.progress.inserts <= 400);
  }
}

TEST_CASE("An agent that stores whole episodes cannot require its newest policy") {
  const replay::TransitionSpec transitions{.frame = {"light", env::ElementType::float32, {2}},
                                           .action_size = 2};
  CHECK(learner::stored_by(Episodic(true), transitions).whole_episodes);
  CHECK_THROWS_WITH_AS(learner::stored_by(Episodic(true, true), transitions),
                       doctest::Contains("newest_policy false"), std::invalid_argument);
}
