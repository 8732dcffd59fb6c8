#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <vector>

#include "actors/protocol/run_config.hpp"
#include "experiments/config/experiment.pb.h"
#include "replay/chunks/spec.hpp"

namespace troupe::experiments {

struct EvaluateOptions {
  int episodes = 10;
  std::filesystem::path video = {};        // of the first episode; empty: none
  int video_size = 480;                    // pixels, square, with all effects
  std::filesystem::path preview = {};      // the video as GIF of at most 100 frames; empty: none
  std::filesystem::path picture = {};      // PNG from the middle of the first episode; empty: none
  const std::atomic<bool>* stop = nullptr; // ends early when it becomes true; may be null
  std::function<void(int episode, double episode_return)> on_episode = {}; // may be empty
};

/// Plays the checkpoint's policy without noise, on this thread, and returns the undiscounted return
/// of each episode. The seeds depend only on the experiment's: the same checkpoint scores the same
/// again. Throws std::runtime_error (damaged checkpoint, no OpenGL, a video that cannot be written)
/// or std::invalid_argument (a checkpoint of another network).
std::vector<double> evaluate_checkpoint(const Experiment& experiment,
                                        const std::filesystem::path& checkpoint,
                                        const EvaluateOptions& options);

/// The acting parameters of a checkpoint. Throws as evaluate_checkpoint() does.
std::vector<float> policy_parameters(const actors::RunConfig& config,
                                     const replay::TransitionSpec& transitions,
                                     const std::filesystem::path& checkpoint);

} // namespace troupe::experiments
