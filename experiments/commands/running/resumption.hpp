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
  std::vector<std::string> notes; // messages for the user: changed keys; nothing left to train
  std::function<std::filesystem::path()> without_takeover = {}; // see actors::Deployment
};

/// Checks that a checkpoint can be used with the changed keys. Throws ConfigError.
void check_changes(const Experiment& before, const Experiment& after);

/// Finds the newest undamaged checkpoint of a run that continues as `after`, planned as `config`.
/// Reports damaged ones on standard error and sets them aside (actors::set_damaged_aside()). If
/// keys have changed, writes the new config.textproto and keeps the old one next to it. Leaves the
/// folder unchanged if find_sound_checkpoint() or actors::check_resumption() throws.
Resumption prepare_resumption(const RunFolder& folder, const Experiment& before,
                              const Experiment& after, const actors::RunConfig& config);

/// Whether a new head may take over the processes of the run `before`: its head or the head's host
/// died within the last few seconds, and the run continues with unchanged keys. Nodes that
/// something else started may then be waiting for the next head, together with the actors that they
/// run.
bool may_take_over(const std::filesystem::path& run, const Experiment& before,
                   const Experiment& after, const actors::RunConfig& config);

/// Like prepare_resumption(), for a head that takes over before the processes give up waiting for
/// it. Looks for a checkpoint only if none of the processes is left.
Resumption prepare_takeover(const RunFolder& folder, const actors::RunConfig& config);

} // namespace troupe::experiments::commands
