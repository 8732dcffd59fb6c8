#include "experiments/commands/running/resumption.hpp"

#include <chrono>
#include <cstdio>

#include "actors/roles/checkpoint.hpp"
#include "actors/supervision/head_record.hpp"
#include "experiments/commands/running/run_experiment.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/resume_changes.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;

/// The reason why the run has nothing left to train; empty if it has.
std::string nothing_left(const actors::RunConfig& config, const fs::path& checkpoint) {
  const auto state = actors::read_manifest(checkpoint).state();
  const auto text = [](const std::string& key, const std::string& limit, const std::string& done) {
    return "nothing is left to train: " + key + " is " + limit
           + " and counts from the run's start, " + done + " are done; --set " + key
           + "= a greater number continues the training";
  };
  if (config.plays() && state.environment_steps() >= config.stop.environment_steps) {
    return text("stop.environment_steps", std::to_string(config.stop.environment_steps),
                std::to_string(state.environment_steps()));
  }
  if (!config.plays() && state.updates() >= config.stop.updates) {
    return text("stop.updates", std::to_string(config.stop.updates),
                std::to_string(state.updates()));
  }
  if (config.stop.minutes > 0 && state.training_seconds() >= 60 * config.stop.minutes) {
    char limit[32];
    char done[32];
    std::snprintf(limit, sizeof limit, "%.4g", config.stop.minutes);
    std::snprintf(done, sizeof done, "%.4g", state.training_seconds() / 60);
    return text("stop.minutes", limit, done);
  }
  return {};
}

fs::path sound_checkpoint(const fs::path& run, const actors::RunConfig& config) {
  actors::clear_checkpoint_remains(run / "checkpoints");
  std::string other_version;
  const auto verify = [&](const fs::path& checkpoint) {
    try {
      actors::verify_checkpoint(checkpoint);
    } catch (const actors::OtherVersion& e) {
      other_version = e.what();
      throw;
    }
  };
  const CheckpointFolder found = find_sound_checkpoint(run, verify, [](const std::string& what) {
    std::fprintf(stderr, "troupe: %s; continuing from the one before it\n", what.c_str());
  });
  if (!other_version.empty()) {
    throw std::runtime_error(other_version
                             + "; resume with the program that wrote it, or move the checkpoint "
                               "away to continue from an older one");
  }
  actors::check_resumption(config, found.path);
  for (const CheckpointFolder& one : complete_checkpoints(run)) {
    if (one.updates > found.updates) { // damaged
      std::fprintf(stderr, "troupe: the damaged checkpoint is now %s\n",
                   actors::set_damaged_aside(one.path).c_str());
    }
  }
  return found.path;
}

} // namespace

void check_changes(const Experiment& before, const Experiment& after) {
  auto complaints = refused_changes(changes_between(before, after));
  if (!complaints.empty()) {
    throw ConfigError(std::move(complaints));
  }
}

bool may_take_over(const fs::path& run, const Experiment& before, const Experiment& after,
                   const actors::RunConfig& config) {
  constexpr double kBetweenRecords = 2; // seconds between two records
  std::error_code error;
  const auto written = fs::last_write_time(actors::head_record_file(run), error);
  if (error) {
    return false;
  }
  const std::chrono::duration<double> age = fs::file_time_type::clock::now() - written;
  return age.count() <= config.supervision.lost_seconds + kBetweenRecords
         && changes_between(before, after).empty();
}

Resumption prepare_takeover(const RunFolder& folder, const actors::RunConfig& config) {
  const auto complete = complete_checkpoints(folder.path());
  return {.checkpoint = complete.empty() ? fs::path() : complete.back().path,
          .notes = {},
          .without_takeover = [run = folder.path(), config] {
            return complete_checkpoints(run).empty() ? fs::path() : sound_checkpoint(run, config);
          }};
}

Resumption prepare_resumption(const RunFolder& folder, const Experiment& before,
                              const Experiment& after, const actors::RunConfig& config) {
  Resumption made;
  made.checkpoint = sound_checkpoint(folder.path(), config);
  for (const KeyChange& change : changes_between(before, after)) {
    made.notes.push_back(text_of(change));
  }
  if (!made.notes.empty()) {
    write_text(name_for_former_config(folder.path()), resolved_text(before));
    write_text(folder.path() / "config.textproto", resolved_text(after));
  }
  if (std::string text = nothing_left(config, made.checkpoint); !text.empty()) {
    made.notes.push_back(std::move(text));
  }
  return made;
}

} // namespace troupe::experiments::commands
