#include "experiments/commands/running/evaluate_run.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "actors/roles/checkpoint.hpp"
#include "env/make/make.hpp"
#include "env/wrappers/frame_sink.hpp"
#include "experiments/config/plan.hpp"
#include "experiments/report/picture.hpp"
#include "experiments/report/video.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/evaluation.hpp"
#include "learner/acting/transition_spec.hpp"
#include "learner/device/safetensors.hpp"
#include "learner/replicas/replicator.hpp"

namespace troupe::experiments {
namespace {

constexpr double kVideoFramesPerSecond = 30;
constexpr std::int64_t kMostPreviewFrames = 100;
constexpr std::int64_t kPreviewPeriod = 3; // minimum, in frames of the video

/// Records pictures of the first episode: all of them as a video, and one as a PNG.
class Film {
public:
  Film(const env::EnvironmentSpec& spec, const EvaluateOptions& options)
      : picture_path_(options.picture),
        size_(options.video_size),
        // A third of the way in, the agent shows what it has learned and the episode has not ended
        // yet.
        picture_step_(spec.episode_steps / 3),
        every_(std::max<std::int64_t>(1, picture_step_)) {
    if (options.video.empty()) {
      return;
    }
    every_ = env::steps_per_frame(spec, kVideoFramesPerSecond);
    const double step_seconds =
        spec.control_timestep_seconds * static_cast<double>(spec.action_repeat);
    const double rate = 1 / (static_cast<double>(every_) * step_seconds);
    const double video_rate = rate < 1000 ? rate : kVideoFramesPerSecond;
    writer_ = write_video(options.video, size_, size_, video_rate);
    if (!options.preview.empty()) {
      preview_period_ =
          std::max(kPreviewPeriod, spec.episode_steps / every_ / kMostPreviewFrames + 1);
      preview_ = write_video(options.preview, size_, size_,
                             video_rate / static_cast<double>(preview_period_));
    }
  }

  env::FrameSinkOptions sink_options() const {
    return {.pixels = {.height = size_, .width = size_}, .every = every_, .episodes = 1};
  }

  void add(const env::Frame& frame) {
    if (writer_) {
      writer_->add(frame.rgb);
    }
    if (preview_ && frame.step / every_ % preview_period_ == 0
        && preview_->frames() < kMostPreviewFrames) {
      preview_->add(frame.rgb);
    }
    if (!picture_path_.empty() && !picture_taken_) {
      picture_.assign(frame.rgb.begin(), frame.rgb.end());
      picture_taken_ = frame.step >= picture_step_;
    }
  }

  void finish() {
    if (writer_) {
      writer_->finish();
    }
    if (preview_) {
      preview_->finish();
    }
    if (!picture_.empty()) {
      write_png(picture_path_, size_, size_, picture_);
    }
  }

private:
  std::filesystem::path picture_path_;
  int size_;
  std::int64_t picture_step_;
  std::int64_t every_;
  std::unique_ptr<VideoFile> writer_;
  std::unique_ptr<VideoFile> preview_;
  std::int64_t preview_period_ = 1;
  std::vector<std::uint8_t> picture_; // the latest picture so far, until picture_step_
  bool picture_taken_ = false;
};

} // namespace

/// The replica knows which of its tensors make up the policy.
std::vector<float> policy_parameters(const actors::RunConfig& config,
                                     const replay::TransitionSpec& transitions,
                                     const std::filesystem::path& checkpoint) {
  const auto parameters = learner::read_safetensors(checkpoint / "learner.safetensors");
  auto optimizer = learner::read_safetensors(checkpoint / "optimizer.safetensors");
  learner::prepare_compute_thread(1); // more threads would only wait for each other
  learner::ReplicaContext context(nullptr, config.seed);
  const auto replica = config.agent->make_replica(transitions);
  replica->build(context);
  context.load_rule_state(optimizer.tensors, 0); // the replica does not know what a rule saves
  replica->load(parameters.tensors, optimizer.tensors);
  const at::Tensor flat = replica->policy_parameters().to(at::kCPU, at::kFloat).contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

std::int64_t exploration_steps(const actors::RunConfig& config,
                               const std::filesystem::path& checkpoint) {
  const std::int64_t steps = actors::read_manifest(checkpoint).state().agent_steps();
  return std::max<std::int64_t>(0, steps - config.random_steps());
}

std::vector<double> evaluate_checkpoint(const Experiment& experiment,
                                        const std::filesystem::path& checkpoint,
                                        const EvaluateOptions& options) {
  const actors::RunConfig config = plan_run(experiment);
  auto environment = env::make_environment(config.environment);
  std::optional<Film> film;
  if (!options.video.empty() || !options.picture.empty()) {
    film.emplace(environment->spec(), options);
    environment =
        std::make_unique<env::FrameSink>(std::move(environment), film->sink_options(),
                                         [&film](const env::Frame& frame) { film->add(frame); });
  }
  const auto transitions = learner::stored_by(
      *config.agent,
      learner::transition_spec(environment->spec(), config.replay.n_step, config.replay.discount));
  const auto policy = config.agent->make_policy(transitions);
  policy->load(policy_parameters(config, transitions, checkpoint));
  const auto stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  // The seeds of the run's own evaluations, so that its first episode is the same as this one.
  const std::uint64_t seed = learner::split_seed(config.seed, {5});
  std::vector<double> returns;
  for (int episode = 0; episode < options.episodes && !stopped(); ++episode) {
    const double episode_return = learner::play_episode(
        *environment, *policy, learner::split_seed(seed, {static_cast<std::uint64_t>(episode)}),
        [&] { return !stopped(); });
    if (stopped()) {
      break;
    }
    if (film && episode == 0) {
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
