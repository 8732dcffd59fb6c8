#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "actors/run/run.hpp"
#include "experiments/config/experiment.pb.h"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::commands {

struct Resumption {
  std::filesystem::path checkpoint;
  std::vector<std::string> notes; // for people: changes of keys; that nothing is left to train
};

/// Checks that a checkpoint fits the changed keys. Throws ConfigError.
void check_changes(const Experiment& before, const Experiment& after);

/// Finds the newest undamaged checkpoint of a run that continues as `after`, planned as `config`;
/// reports damaged ones on standard error. If keys have changed, writes the new config.textproto
/// and keeps the old one beside it. If find_sound_checkpoint() or actors::check_resumption()
/// throws, the folder is unchanged.
Resumption prepare_resumption(const RunFolder& folder, const Experiment& before,
                              const Experiment& after, const actors::RunConfig& config);

} // namespace troupe::experiments::commands
