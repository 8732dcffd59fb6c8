#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "actors/protocol/run_config.hpp"
#include "experiments/config/experiment.pb.h"
#include "replay/chunks/spec.hpp"

namespace troupe::experiments {

struct EvaluateOptions {
  int episodes = 10;
  std::filesystem::path video = {};        // video file of the first episode; empty: none
  int video_size = 480;                    // height and width in pixels; all visual effects are on
  std::filesystem::path preview = {};      // the video as a GIF of at most 100 frames; empty: none
  std::filesystem::path picture = {};      // PNG, a third into the first episode; empty: none
  const std::atomic<bool>* stop = nullptr; // the evaluation ends early once it is true; may be null
  std::function<void(int episode, double episode_return)> on_episode = {}; // may be empty
};

/// Plays the checkpoint's policy without exploration noise on the calling thread. Returns the
/// undiscounted return of each episode. The seeds depend only on the experiment's seed, so that a
/// checkpoint gets the same score each time. Throws std::runtime_error for a damaged checkpoint,
/// missing OpenGL or a video that cannot be written, and std::invalid_argument for a checkpoint of
/// a different network.
std::vector<double> evaluate_checkpoint(const Experiment& experiment,
                                        const std::filesystem::path& checkpoint,
                                        const EvaluateOptions& options);

/// The acting parameters of a checkpoint. Throws the same exceptions as evaluate_checkpoint().
std::vector<float> policy_parameters(const actors::RunConfig& config,
                                     const replay::TransitionSpec& transitions,
                                     const std::filesystem::path& checkpoint);

/// The agent steps of a checkpoint's run after its random ones, which exploration depends on
/// (learner::Exploration::steps). Throws std::runtime_error for a damaged checkpoint.
std::int64_t exploration_steps(const actors::RunConfig& config,
                               const std::filesystem::path& checkpoint);

} // namespace troupe::experiments
