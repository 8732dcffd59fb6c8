#pragma once

#include <cstdint>
#include <filesystem>

#include "experiments/config/experiment.pb.h"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/off_policy/fitted_evaluation.hpp"

namespace troupe::experiments::commands {

struct RecordedEvaluation {
  std::filesystem::path recording;
  bool explore = false;               // as in training, instead of the policy's best actions
  int members = 5;                    // networks, each of episodes drawn again
  double discount = 0;                // 0: the run's
  learner::FittedEvaluation fit = {}; // discount, time limit and seed are set from the run
};

/// Estimates from recorded episodes what a run's policy would return, without playing it, and
/// prints the estimate beside what was recorded. Throws std::invalid_argument if the recording is
/// of another environment, naming the difference, replay::StorageError.
void evaluate_on_recording(const Experiment& experiment, const CheckpointFolder& checkpoint,
                           RecordedEvaluation options, bool json);

} // namespace troupe::experiments::commands
