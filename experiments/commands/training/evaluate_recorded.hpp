#pragma once

#include <cstdint>
#include <filesystem>

#include "experiments/config/experiment.pb.h"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/off_policy/fitted_evaluation.hpp"

namespace troupe::experiments::commands {

struct RecordedEvaluation {
  std::filesystem::path recording;
  bool explore = false;               // explore as in training instead of the best actions
  int members = 5;                    // number of networks, each fitted to resampled episodes
  double discount = 0;                // 0: the run's discount
  learner::FittedEvaluation fit = {}; // the run sets discount, time limit and seed
};

/// Estimates the return of a run's policy from recorded episodes, without playing it, and prints
/// the estimate next to the recorded return. Throws replay::StorageError, and std::invalid_argument
/// that names the difference if the recording is of a different environment.
void evaluate_on_recording(const Experiment& experiment, const CheckpointFolder& checkpoint,
                           RecordedEvaluation options, bool json);

} // namespace troupe::experiments::commands
