#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "actors/run.hpp"
#include "experiments/experiment.pb.h"
#include "experiments/run_folder.hpp"

namespace troupe::experiments::commands {

struct Resumption {
  std::filesystem::path checkpoint;
  std::vector<std::string> changes; // of keys, for people
};

/// What is refused before a run's folder is touched: keys that a checkpoint cannot follow. Throws
/// ConfigError.
void check_changes(const Experiment& before, const Experiment& after);

/// The newest sound checkpoint of a run that goes on as `after`, planned as `config`; the words of
/// damaged ones go to standard error. Where keys have changed config.textproto becomes the new
/// experiment's, and the old one stays beside it. Throws, with the folder as it was, what
/// find_sound_checkpoint() and actors::check_resumption() throw.
Resumption prepare_resumption(const RunFolder& folder, const Experiment& before,
                              const Experiment& after, const actors::RunConfig& config);

} // namespace troupe::experiments::commands
