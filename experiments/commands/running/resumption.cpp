#include "experiments/commands/running/resumption.hpp"

#include <cstdio>

#include "actors/roles/checkpoint.hpp"
#include "experiments/commands/running/run_experiment.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/resume_changes.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;

void check_with_checkpoint(const actors::RunConfig& config, const fs::path& checkpoint) {
  actors::check_resumption(config, checkpoint);
}
void clear_remains(const fs::path& checkpoints) {
  actors::clear_checkpoint_remains(checkpoints);
}

/// config.textproto, config-1.textproto, ...: the first name that is free.
fs::path name_for_former(const fs::path& run) {
  for (int i = 1;; ++i) {
    const fs::path path = run / ("config-" + std::to_string(i) + ".textproto");
    if (!fs::exists(path)) {
      return path;
    }
  }
}

} // namespace

void check_changes(const Experiment& before, const Experiment& after) {
  auto complaints = refused_changes(changes_between(before, after));
  if (!complaints.empty()) {
    throw ConfigError(std::move(complaints));
  }
}

Resumption prepare_resumption(const RunFolder& folder, const Experiment& before,
                              const Experiment& after, const actors::RunConfig& config) {
  clear_remains(folder.path() / "checkpoints");
  Resumption made;
  made.checkpoint =
      find_sound_checkpoint(folder.path(), verify_checkpoint, [](const std::string& what) {
        std::fprintf(stderr, "troupe: %s; continuing from the one before it\n", what.c_str());
      }).path;
  check_with_checkpoint(config, made.checkpoint);
  for (const KeyChange& change : changes_between(before, after)) {
    made.changes.push_back(text_of(change));
  }
  if (!made.changes.empty()) {
    write_text(name_for_former(folder.path()), resolved_text(before));
    write_text(folder.path() / "config.textproto", resolved_text(after));
  }
  return made;
}

} // namespace troupe::experiments::commands
