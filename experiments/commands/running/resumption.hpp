#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "actors/run/run.hpp"
#include "experiments/config/experiment.pb.h"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::commands {

struct Resumption {
  std::filesystem::path checkpoint;
  std::vector<std::string> notes; // for people: changes of keys; that nothing is left to train
  std::function<std::filesystem::path()> without_takeover = {}; // as the Deployment's
};

/// Checks that a checkpoint fits the changed keys. Throws ConfigError.
void check_changes(const Experiment& before, const Experiment& after);

/// Finds the newest undamaged checkpoint of a run that continues as `after`, planned as `config`;
/// reports damaged ones on standard error. If keys have changed, writes the new config.textproto
/// and keeps the old one beside it. If find_sound_checkpoint() or actors::check_resumption()
/// throws, the folder is unchanged.
Resumption prepare_resumption(const RunFolder& folder, const Experiment& before,
                              const Experiment& after, const actors::RunConfig& config);

/// A head of the run `before` died in the last few seconds, or its host did, and the run continues
/// as it was: nodes that others have started may wait for the next head, with what runs on them.
bool may_take_over(const std::filesystem::path& run, const Experiment& before,
                   const Experiment& after, const actors::RunConfig& config);

/// The same for a head that takes over, in less time than the processes wait for it: the checkpoint
/// is looked at only if none of them is left.
Resumption prepare_takeover(const RunFolder& folder, const actors::RunConfig& config);

} // namespace troupe::experiments::commands
