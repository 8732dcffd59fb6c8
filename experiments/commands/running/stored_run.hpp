#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "replay/objects/object_store.hpp"

namespace troupe::experiments::commands {

/// What a person gives for a run's folder: itself, or s3://bucket/prefix/NAME/TIME, where
/// checkpoint.store has copies of a run. Of those it makes <runs>/NAME/TIME, or brings it up to
/// date: the experiment file, the metrics and the newest checkpoint that is complete and sound; a
/// damaged one costs a line on standard error. A run that is here with this checkpoint or a newer
/// one stays as it is. Throws std::invalid_argument on an address without a run,
/// replay::StoreError, and std::runtime_error when a process works on the local run.
std::filesystem::path local_run(const std::string& run, const std::filesystem::path& runs);

/// The same with a given store and check of a checkpoint's folder.
std::filesystem::path
fetch_run(replay::ObjectStore& store, const replay::ObjectAddress& run,
          const std::filesystem::path& runs,
          const std::function<void(const std::filesystem::path& checkpoint)>& check,
          const std::function<void(const std::string& line)>& tell);

} // namespace troupe::experiments::commands
