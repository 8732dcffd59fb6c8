// Exports policies with random parameters for every kind of agent, observation and action, for
// export_checks.py. Each goes to a separate folder. Usage: export_cases FOLDER SAMPLES
// [float|bfloat16|int8 [NAME…]]
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "env/make/make.hpp"
#include "env/wrappers/observation_statistics.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/plan.hpp"
#include "experiments/exporting/header_file.hpp"
#include "experiments/exporting/onnx_file.hpp"
#include "experiments/exporting/samples.hpp"
#include "experiments/exporting/tensor_files.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/acting/transition_spec.hpp"

namespace fs = std::filesystem;
using namespace troupe;
using namespace troupe::experiments;

namespace {

struct Case {
  std::string name;
  std::string experiment;
};

std::vector<Case> cases(const fs::path& statistics) {
  const std::string walker = "environment { task: \"walker_walk\" } ";
  const std::string small = "environment { task: \"cartpole_swingup\" pixels { height: 40 width: "
                            "44 renderer: CASTER } frame_stack: 2 } ";
  const std::string catcher = "environment { task: \"MinAtar/Breakout-v0\" } ";
  const std::string pole = "environment { task: \"CartPole-v1\" } ";
  return {
      {"policy", walker + "d4pg { policy_layers: [256, 256] }"},
      {"td3_normalised",
       "environment { task: \"walker_walk\" frame_stack: 2 action_clip: 0.8 action_rescale: true "
       "normalization { mode: \"frozen\" file: \""
           + statistics.string() + "\" } } td3 { policy_layers: [64, 64] }"},
      {"sac_bounds", "environment { task: \"Pendulum-v1\" } sac { policy_layers: [64, 64] }"},
      {"d4pg_blocks", walker
                          + "d4pg { policy_layers: [64] policy_blocks: 2 critic_layers: [64] "
                            "normalise_observations: true }"},
      {"sac_blocks",
       "environment { task: \"Pendulum-v1\" } sac { policy_layers: [48] policy_blocks: 1 }"},
      {"sac_spherical",
       walker
           + "sac { spherical: true policy_layers: [50] policy_blocks: 2 "
             "critic_layers: [64] critic_blocks: 1 normalise_observations: true }"},
      {"ppo", walker + "ppo { layers: [64, 64] }"},
      {"ppo_memory", walker + "ppo { layers: [40] lstm: 24 }"},
      {"impala_choice", pole + "impala { layers: [50, 30] }"},
      {"dqn", pole + "dqn { layers: [64, 64] dueling: true }"},
      {"r2d2", pole + "r2d2 { layers: [32] lstm: 20 }"},
      {"dqn_rainbow",
       catcher
           + "dqn { layers: [32] dueling: true noisy: true atoms: 21 value_minimum: -5 "
             "value_maximum: 5 }"},
      {"r2d2_pixels", catcher + "r2d2 { layers: [32] lstm: 20 }"},
      {"d4pg_pixels", small + "d4pg { encoder: \"stride4\" encoder_channels: 6 feature_size: 20 }"},
      {"drqv2", small + "drqv2 { encoder_channels: 8 feature_size: 20 policy_layers: [32] }"},
      {"ppo_both",
       "environment { task: \"cartpole_swingup\" observations: [\"pixels\", \"velocity\"] pixels { "
       "height: "
       "40 width: 40 renderer: CASTER } } ppo { encoder: \"nature\" layers: [32] lstm: 12 }"},
  };
}

/// Statistics with a mean other than 0 and different deviations.
void write_some_statistics(const fs::path& file) {
  const auto environment = env::make_environment({.task = "walker_walk"});
  env::ObservationStatistics made = env::empty_statistics(environment->spec());
  made.count = 100;
  for (auto& array : made.arrays)
    for (std::size_t i = 0; i < array.mean.size(); ++i) {
      array.mean[i] = 0.1 * static_cast<double>(i % 7) - 0.2;
      array.squares[i] = 20.0 * static_cast<double>(1 + i % 5);
    }
  env::write_statistics(file, made);
}

constexpr std::int64_t kTried = 200; // observations

void load_random(learner::Policy& policy, std::uint32_t seed, float deviation) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> parameters(static_cast<std::size_t>(policy.parameter_count()));
  for (float& parameter : parameters)
    parameter = normal(random);
  policy.load(parameters);
}

bool every_action_varies(const std::vector<float>& taken, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    float least = taken[i];
    float most = taken[i];
    for (std::size_t row = i; row < taken.size(); row += size) {
      least = std::min(least, taken[row]);
      most = std::max(most, taken[row]);
    }
    if (most - least < 0.02F)
      return false;
  }
  return true;
}

void write_case(const fs::path& folder, const Case& one, std::int64_t samples,
                learner::WeightType weights) {
  fs::create_directories(folder);
  const Experiment experiment = parse_experiment(one.experiment, one.name);
  const actors::RunConfig config = plan_run(experiment);
  PolicyContract contract = contract_of(config.environment);
  contract.agent = one.name;
  contract.version = "test";
  const auto environment = env::make_environment(config.environment);
  const auto transitions = learner::stored_by(
      *config.agent, learner::transition_spec(environment->spec(), 1, config.replay.discount));
  const auto policy = config.agent->make_policy(transitions);
  learner::PolicyGraph graph;
  PolicySamples recorded;
  for (std::uint32_t seed = 1; seed < 100; ++seed) { // until its actions depend on the observations
    load_random(*policy, seed, 0.1F * (1 + 0.1F * static_cast<float>(seed)));
    graph = policy->graph().value();
    contract.state_size = graph.state_size();
    recorded = record_samples(config.environment, contract, *policy, graph, weights, 11, kTried);
    if (every_action_varies(recorded.actions, contract.actions.size()))
      break;
  }
  recorded = record_samples(config.environment, contract, *policy, graph, weights, 11, samples);
  write_text(folder / "contract.json", contract_text(contract));
  write_samples(folder / "samples.safetensors", recorded, graph.picture, contract);
  write_onnx(folder / "policy.onnx", graph, contract);
  write_parameters(folder / "policy.safetensors", graph, contract);
  write_header(folder, one.name, graph, contract, weights);
  std::printf("%s: layers differ by %.2g\n", one.name.c_str(), recorded.largest_difference);
}

} // namespace

int main(int count, char** arguments) {
  if (count < 3)
    return 2;
  try {
    const fs::path folder = arguments[1];
    fs::create_directories(folder);
    write_some_statistics(folder / "statistics.json");
    const auto weights = learner::weight_type_named(count > 3 ? arguments[3] : "float");
    const std::int64_t samples = std::stoll(arguments[2]);
    const std::set<std::string> wanted(arguments + std::min(count, 4), arguments + count);
    for (const Case& one : cases(folder / "statistics.json"))
      if (wanted.empty() || wanted.contains(one.name))
        write_case(folder / one.name, one, samples, weights);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "export_cases: %s\n", error.what());
    return 1;
  }
  return 0;
}
