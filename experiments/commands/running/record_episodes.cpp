#include "experiments/commands/running/record_episodes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "env/make/make.hpp"
#include "experiments/commands/running/evaluate_run.hpp"
#include "experiments/config/agent_choice.hpp"
#include "experiments/config/plan.hpp"
#include "learner/acting/best_actions.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/transition_spec.hpp"

namespace troupe::experiments {
namespace {

/// Makes every row an item immediately, so that no row of an open episode is lost. With
/// `log_probability` each row has that extra.
replay::TransitionSpec row_by_row(replay::TransitionSpec transitions, bool log_probability) {
  transitions.n_step = 1;
  transitions.running_return = false;
  if (log_probability) {
    if (!transitions.is_sequence())
      transitions.extras = {{learner::kVersionColumn, env::ElementType::int64, {}}};
    transitions.sequence_steps = 1;
    transitions.extras.push_back({replay::kPlayedLogProbability, env::ElementType::float32, {}});
  }
  if (transitions.is_sequence())
    transitions.sequence_steps = transitions.sequence_period = 1;
  transitions.whole_episodes = false;
  return transitions;
}

/// The episodes of one environment, until it has played its share of them.
struct Lane {
  replay::EpisodeJoiner joiner;
  std::int64_t left = 0; // episodes still to play
};

std::int64_t share(std::int64_t all, int parts, int part) {
  return all / parts + (part < all % parts ? 1 : 0);
}

} // namespace

std::string PlayedActions::limit_text() const {
  char made[32];
  return {made, std::to_chars(made, made + sizeof made, limit).ptr};
}

PlayedActions played_actions(const env::EnvironmentConfig& config) {
  const env::ActionSpec bare = env::make_bare(config)->spec().action;
  PlayedActions made{.minimum = bare.minimum, .maximum = bare.maximum};
  if (!config.action_rescale)
    made.limit = config.action_clip;
  if (!config.action_rescale || config.action_clip >= 1)
    return made;
  for (std::size_t i = 0; i < bare.size(); ++i) {
    if (bare.choices_of(i) != 0)
      continue;
    const bool bounded = std::isfinite(bare.minimum[i]) && std::isfinite(bare.maximum[i]);
    const double middle = bounded ? (bare.minimum[i] + bare.maximum[i]) / 2 : 0;
    const double half = bounded ? (bare.maximum[i] - bare.minimum[i]) / 2 : 1;
    made.minimum[i] = middle - config.action_clip * half;
    made.maximum[i] = middle + config.action_clip * half;
  }
  return made;
}

void record_episodes(const Experiment& experiment, const std::filesystem::path& folder,
                     const RecordOptions& options) {
  if (options.episodes < 1 && options.steps < 1)
    throw std::invalid_argument(
        "the length of the recording is missing; give --episodes or --steps");
  actors::RunConfig config = plan_run(experiment);
  config.seed = options.seed.value_or(config.seed);
  const bool random = options.checkpoint.empty();
  const int lanes = options.episodes > 0 && options.episodes < options.environments
                        ? static_cast<int>(options.episodes)
                        : options.environments;
  config.environment.frame_stack = 1; // frames are recorded once; the policy sees them stacked
  const auto make = [&](int) { return env::make_environment(config.environment); };
  auto plain = learner::transition_spec(make(0)->spec(), 1, config.replay.discount);
  plain.stack = experiment.environment().frame_stack();
  const auto stored = learner::stored_by(*config.agent, plain);
  auto policy = config.agent->make_policy(stored);
  if (!options.explore)
    policy = std::make_unique<learner::BestActions>(std::move(policy), plain);
  const bool log_probability = random || policy->has_density();
  const auto transitions = row_by_row(stored, log_probability);
  const std::int64_t explored = random ? 0 : exploration_steps(config, options.checkpoint);
  learner::Collector collector({.seed = config.seed,
                                .total_lanes = lanes,
                                .steps_before = explored / lanes,
                                .random_steps = random ? std::int64_t{1} << 60 : 0,
                                .environments = lanes},
                               make, std::move(policy), transitions);
  replay::RecordingSpec spec = replay::recording_of(plain);
  const PlayedActions played = played_actions(config.environment);
  spec.action_minimum = played.minimum;
  spec.action_maximum = played.maximum;
  spec.log_probability = log_probability;
  const std::string& task = experiment.environment().task();
  spec.about = {{"task", task},
                {"agent", chosen_agent(experiment).kind->name},
                {"policy", random            ? "random"
                           : options.explore ? "exploring"
                                             : "best actions"},
                {"seed", std::to_string(config.seed)},
                {"action_repeat", std::to_string(experiment.environment().action_repeat())},
                {"action_clip", played.limit_text()}};
  if (!random) {
    spec.about["checkpoint"] = options.checkpoint.string();
    collector.load_parameters(0, policy_parameters(config, stored, options.checkpoint));
  }
  replay::RecordingWriter writer(folder, spec);
  std::int64_t steps = 0; // in completed episodes
  const auto add = [&](Lane& lane, const replay::Episode& episode) {
    if (lane.left-- <= 0)
      return;
    writer.add(episode);
    steps += episode.steps();
    if (options.on_episode)
      options.on_episode(writer.episodes(), episode.total_reward());
  };
  std::vector<Lane> playing;
  for (int i = 0; i < lanes; ++i)
    playing.push_back(
        {.joiner = replay::EpisodeJoiner(spec),
         .left = options.episodes > 0 ? share(options.episodes, lanes, i) : std::int64_t{1} << 60});
  const auto done = [&] {
    std::int64_t all = steps;
    bool wants = false;
    for (const Lane& lane : playing) {
      wants = wants || lane.left > 0;
      all += lane.left > 0 ? lane.joiner.open().steps() : 0;
    }
    return !wants || (options.steps > 0 && all >= options.steps)
           || (options.stop != nullptr && *options.stop);
  };
  while (!done()) {
    collector.choose_actions();
    collector.step_environments();
    for (int i = 0; i < lanes; ++i)
      if (const auto insertion = collector.take(i)) {
        Lane& lane = playing[static_cast<std::size_t>(i)];
        lane.joiner.add(*insertion, [&](const replay::Episode& episode) { add(lane, episode); });
      }
  }
  for (Lane& lane : playing)
    if (lane.joiner.open().steps() > 0)
      add(lane, lane.joiner.open());
  if (writer.episodes() == 0)
    throw std::invalid_argument("stopped before the first step; nothing was recorded");
  writer.commit();
}

} // namespace troupe::experiments
