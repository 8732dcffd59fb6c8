// Runs whose evaluator dies during an evaluation for which the run waits.
#include "tests/actors/small_run.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <stdexcept>

#include "actors/roles/checkpoint.hpp"
#include "env/plugin/plugin.hpp"
#include "env/random.hpp"
#include "env/state_bytes.hpp"
#include "learner/acting/collector.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::actors;

namespace {

constexpr int kAttempts = 4; // an evaluator dies when that many episodes in a row fail

/// What happens in an episode of evaluations.
struct Script {
  std::atomic<int> failures = 0;      // of the next attempts
  std::atomic<int> begun = 0;         // without the attempts that fail
  std::array<double, 3> returns = {}; // of the first episodes; the last one is repeated
};
std::array<Script, 2> scripts; // of the episodes 0 and 1

/// Returns the script of an evaluation's episode with this seed; null for training episodes.
Script* script_of(std::uint64_t seed) {
  static const std::uint64_t all = learner::split_seed(RunConfig().seed, {5});
  for (std::uint64_t episode = 0; episode < scripts.size(); ++episode) {
    if (seed == learner::split_seed(all, {episode}))
      return &scripts[episode];
    for (std::uint64_t failed = 1; failed < std::uint64_t{kAttempts}; ++failed)
      if (seed == learner::split_seed(all, {episode, failed}))
        return &scripts[episode];
  }
  return nullptr;
}

/// Episodes of four steps.
class Scripted final : public env::Environment {
public:
  explicit Scripted(const env::Options&) {
    spec_.name = "scripted";
    spec_.observations = {{"light", env::ElementType::float64, {2}}};
    spec_.action = {.minimum = {-1}, .maximum = {1}, .choices = {0}};
    spec_.episode_steps = 4;
    spec_.control_timestep_seconds = 1;
  }
  const env::EnvironmentSpec& spec() const override { return spec_; }

  env::TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    state_ = {.random = env::Random(seed)};
    if (Script* script = script_of(seed)) {
      if (script->failures > 0) {
        --script->failures;
        throw std::runtime_error("the curtain is stuck");
      }
      const auto number = static_cast<std::size_t>(script->begun++);
      state_.episode_return = script->returns[std::min(number, script->returns.size() - 1)];
    }
    observe(observation);
    return {};
  }
  env::TimeStep step(std::span<const double>, std::span<std::byte> observation) override {
    observe(observation);
    const bool last = ++state_.steps == spec_.episode_steps;
    return {last ? env::StepType::last : env::StepType::mid, last ? state_.episode_return : 0, 1};
  }
  void save_state(std::vector<std::byte>& out) const override { env::save_value(out, state_); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    env::load_value(in, state_, "scripted");
    return in;
  }

private:
  struct State {
    env::Random random;
    std::int64_t steps = 0;
    double episode_return = 0;
  };
  void observe(std::span<std::byte> observation) {
    const double light[2] = {state_.random.uniform(), state_.random.uniform()};
    std::memcpy(observation.data(), light, sizeof light);
  }
  env::EnvironmentSpec spec_;
  State state_;
};

RunConfig scripted(std::int64_t environment_steps) {
  for (Script& script : scripts) {
    script.failures = script.begun = 0;
    script.returns = {};
  }
  RunConfig config = small(environment_steps);
  config.deterministic = false;
  config.environment = {.task = "scripted"};
  return config;
}

} // namespace

TEST_CASE("A run confirms a goal that was reached if its evaluator dies during the confirmation") {
  auto config = scripted(100'000);
  config.evaluation.period = 10'000;
  config.evaluation.episodes = 1;
  config.evaluation.final_episodes = 2;
  config.stop.evaluation_return = 10;
  // Episode 0: the evaluation, the confirmation that fails, and all later evaluations, none of
  // which reaches the goal alone.
  scripts[0].returns = {10, 10, 0};
  scripts[1].returns = {20, 20, 20};
  scripts[1].failures = kAttempts;
  const TemporaryFolder folder;
  const RunResult result = play(config, folder.path());
  REQUIRE(result.error == "");
  CHECK(scripts[1].failures.load() == 0);
  CHECK(result.progress.environment_steps < config.stop.environment_steps);
}

TEST_CASE("A run whose evaluator dies in the final evaluation evaluates its last checkpoint") {
  auto config = scripted(6000);
  scripts[0].failures = kAttempts;
  const TemporaryFolder folder;
  const RunResult result = play(config, folder.path());
  REQUIRE(result.error == "");
  CHECK(scripts[0].failures.load() == 0);
  CHECK(result.evaluation.final);
  const auto state = read_manifest(result.checkpoint).state();
  CHECK(state.updates() == result.evaluation.updates);
  CHECK(state.evaluation_updates() == result.evaluation.updates);
}

TROUPE_ENVIRONMENTS({"scripted", "Evaluations go by a script.", env::make_own<Scripted>});
