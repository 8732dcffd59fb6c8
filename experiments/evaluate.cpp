#include "experiments/evaluate.hpp"

#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>

#include "env/make.hpp"
#include "env/physics.hpp"
#include "env/render/renderer.hpp"
#include "experiments/picture.hpp"
#include "experiments/plan.hpp"
#include "experiments/video.hpp"
#include "learner/collector.hpp"
#include "learner/evaluation.hpp"
#include "learner/safetensors.hpp"

namespace troupe::experiments {
namespace {

constexpr double kVideoFramesPerSecond = 30;

/// The acting policy of a checkpoint. The replica knows which of its tensors make it up.
std::unique_ptr<learner::Policy> load_policy(const actors::RunConfig& config,
                                             const replay::TransitionSpec& transitions,
                                             const std::filesystem::path& checkpoint) {
  const auto parameters = learner::read_safetensors(checkpoint / "learner.safetensors");
  const auto optimizer = learner::read_safetensors(checkpoint / "optimizer.safetensors");
  auto agent = config.agent;
  agent.precision = agent.precision == "auto" ? "float32" : agent.precision; // nothing is learnt
  learner::ReplicaContext context(nullptr, config.seed);
  const auto replica = learner::make_d4pg(agent, {transitions});
  replica->build(context);
  replica->load(parameters.tensors, optimizer.tensors);
  const at::Tensor flat = replica->policy_parameters().to(at::kCPU, at::kFloat).contiguous();
  auto policy = learner::make_d4pg_policy(agent, {transitions});
  policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  return policy;
}

/// Draws the first episode, at no more than 30 frames per second of simulated time.
class Film {
public:
  Film(env::Environment& environment, const EvaluateOptions& options)
      : picture_path_(options.picture) {
    if (environment.physics() == nullptr) {
      throw std::invalid_argument(environment.spec().name + ": has no physics to draw");
    }
    const auto& spec = environment.spec();
    const double step_seconds =
        spec.control_timestep_seconds * static_cast<double>(spec.action_repeat);
    every_ =
        std::max(1, static_cast<int>(std::ceil(1 / (kVideoFramesPerSecond * step_seconds) - 1e-6)));
    size_ = options.video_size;
    env::PixelOptions pixels;
    pixels.height = size_;
    pixels.width = size_;
    renderer_ = std::make_unique<env::Renderer>(*environment.physics(), pixels,
                                                env::PixelLayout::channels_last);
    frame_.resize(renderer_->bytes());
    if (!options.video.empty()) {
      const double rate = std::min(1 / (every_ * step_seconds), 1000.0);
      writer_ = std::make_unique<VideoWriter>(options.video, size_, size_, rate);
    }
    // A third of the way in: the agent does what it learnt, and has not yet ended.
    picture_step_ = spec.episode_steps > 0 ? spec.episode_steps / 3 : 0;
  }

  void step() {
    const bool picture = !picture_path_.empty() && steps_ == picture_step_;
    if ((steps_ % every_ == 0 && writer_) || picture) {
      renderer_->draw(frame_);
      if (picture) {
        write_png(picture_path_, size_, size_, frame_);
      }
      if (writer_ && steps_ % every_ == 0) {
        writer_->add(frame_);
      }
    }
    ++steps_;
  }

  void finish() {
    if (writer_) {
      writer_->finish();
    }
  }

private:
  std::filesystem::path picture_path_;
  int size_ = 0;
  int every_ = 1;
  std::int64_t picture_step_ = 0;
  std::int64_t steps_ = 0;
  std::unique_ptr<env::Renderer> renderer_;
  std::vector<std::uint8_t> frame_;
  std::unique_ptr<VideoWriter> writer_;
};

} // namespace

std::vector<double> evaluate_checkpoint(const Experiment& experiment,
                                        const std::filesystem::path& checkpoint,
                                        const EvaluateOptions& options) {
  const actors::RunConfig config = plan_run(experiment);
  const auto environment = env::make_environment(config.environment);
  const auto policy = load_policy(
      config,
      learner::transition_spec(environment->spec(), config.replay.n_step, config.replay.discount),
      checkpoint);
  const auto stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  // The seeds of a run's own evaluations: its first episode and this one are the same.
  const std::uint64_t seed = learner::split_seed(config.seed, {5});
  const bool film_wanted = !options.video.empty() || !options.picture.empty();
  std::unique_ptr<Film> film;
  std::vector<double> returns;
  for (int episode = 0; episode < options.episodes && !stopped(); ++episode) {
    const bool filmed = film_wanted && episode == 0;
    const auto after_step = [&] {
      if (filmed && film == nullptr) { // physics exists after the first reset
        film = std::make_unique<Film>(*environment, options);
      }
      if (filmed) {
        film->step();
      }
      return !stopped();
    };
    const double episode_return = learner::play_episode(
        *environment, *policy, learner::split_seed(seed, {static_cast<std::uint64_t>(episode)}),
        after_step);
    if (stopped()) {
      break;
    }
    if (filmed) {
      film->finish();
    }
    returns.push_back(episode_return);
    if (options.on_episode) {
      options.on_episode(episode, episode_return);
    }
  }
  return returns;
}

} // namespace troupe::experiments
