#include "env/make/make.hpp"

#include <algorithm>
#include <stdexcept>

#include "env/wrappers/action_clip.hpp"
#include "env/wrappers/action_noise.hpp"
#include "env/wrappers/action_repeat.hpp"
#include "env/wrappers/action_scale.hpp"
#include "env/wrappers/dictionary.hpp"
#include "env/wrappers/episode_statistics.hpp"
#include "env/wrappers/flat_state.hpp"
#include "env/wrappers/frame_stack.hpp"
#include "env/wrappers/normalize.hpp"
#include "env/wrappers/pixels.hpp"
#include "env/wrappers/randomize.hpp"
#include "env/wrappers/reward_scale.hpp"
#include "env/wrappers/time_limit.hpp"

namespace troupe::env {

namespace {

/// Whether the only array is a picture.
bool shows_pixels(const EnvironmentSpec& spec) {
  return spec.observations.size() == 1 && spec.observations[0].is_picture();
}

std::vector<Randomization> changes_of(const RandomizationConfig& config) {
  std::vector<Randomization> changes;
  if (config.colours != 0)
    changes.push_back(random_colours(config.colours));
  if (config.lights != 0)
    changes.push_back(random_lights(config.lights));
  if (config.camera != 0 || config.field_of_view != 0)
    changes.push_back(random_cameras(config.camera, config.field_of_view));
  if (config.masses != 0)
    changes.push_back(random_masses(config.masses));
  if (config.friction != 0)
    changes.push_back(random_friction(config.friction));
  return changes;
}

using Made = std::unique_ptr<Environment>;

Made wrap_simulation(Made made, const EnvironmentConfig& config) {
  if (config.time_limit != 0)
    made = std::make_unique<TimeLimit>(std::move(made), config.time_limit);
  if (!config.episode_log.empty()) {
    const std::string name = made->spec().name;
    made = std::make_unique<EpisodeStatistics>(std::move(made),
                                               append_to_log(config.episode_log, name));
  }
  if (auto changes = changes_of(config.randomization); !changes.empty())
    made = std::make_unique<Randomize>(std::move(made), std::move(changes));
  return made;
}

Made wrap_actions(Made made, const EnvironmentConfig& config) {
  made = std::make_unique<ActionScale>(std::move(made));
  if (!(config.action_clip > 0 && config.action_clip <= 1))
    throw std::invalid_argument("action_clip: " + std::to_string(config.action_clip)
                                + " is out of range; it must be above 0 and at most 1");
  if (config.action_clip < 1) {
    made = std::make_unique<ActionClip>(std::move(made), -config.action_clip, config.action_clip);
    if (config.action_rescale)
      made = std::make_unique<ActionScale>(std::move(made));
  }
  if (config.action_noise != 0)
    made = std::make_unique<ActionNoise>(std::move(made), config.action_noise);
  made = std::make_unique<ActionRepeat>(std::move(made), config.action_repeat);
  if (config.reward_scale != 1)
    made = std::make_unique<RewardScale>(std::move(made), config.reward_scale);
  if (config.reward_clip != 0)
    made = std::make_unique<RewardClip>(std::move(made), -config.reward_clip, config.reward_clip);
  return made;
}

Made normalize(Made made, const NormalizationConfig& config) {
  NormalizeOptions options{.clip = config.clip, .update = config.mode == "running"};
  if (config.mode != "running" && config.mode != "frozen")
    throw std::invalid_argument("normalization.mode: '" + config.mode
                                + "' is not a mode; it must be \"off\", \"running\" or \"frozen\"");
  if (!config.file.empty())
    options.statistics = read_statistics(config.file);
  else if (!options.update)
    throw std::invalid_argument("normalization.file is empty; mode \"frozen\" needs a file of "
                                "statistics (`troupe check environment … --statistics FILE`)");
  return std::make_unique<Normalize>(std::move(made), std::move(options));
}

Made wrap_observations(Made made, const EnvironmentConfig& config) {
  if (!config.observations.empty())
    made = std::make_unique<Dictionary>(std::move(made), config.observations,
                                        config.pixels.value_or(PixelOptions{}));
  else if (config.pixels)
    made = std::make_unique<Pixels>(std::move(made), *config.pixels);
  else if (!shows_pixels(made->spec()))
    made = std::make_unique<FlatState>(std::move(made));
  if (config.normalization.mode != "off")
    made = normalize(std::move(made), config.normalization);
  const auto& arrays = made->spec().observations;
  if (config.frame_stack == 1 // an actor's pictures can be drawn straight into replay's rows
      && std::any_of(arrays.begin(), arrays.end(), [](const auto& a) { return a.is_picture(); }))
    return made;
  return std::make_unique<FrameStack>(std::move(made), config.frame_stack);
}

} // namespace

std::unique_ptr<Environment> make_environment(const EnvironmentConfig& config) {
  return wrap_environment(make_bare(config), config);
}

std::unique_ptr<Environment> wrap_environment(std::unique_ptr<Environment> bare,
                                              const EnvironmentConfig& config) {
  Made made = wrap_simulation(std::move(bare), config);
  return wrap_observations(wrap_actions(std::move(made), config), config);
}

} // namespace troupe::env
