#pragma once

#include <filesystem>
#include <string>

namespace troupe::experiments::commands {

/// Returns the folder of a run that the user named: `run` itself, or for
/// s3://bucket/prefix/NAME/TIME, where checkpoint.store keeps copies of a run, the local folder
/// <runs>/NAME/TIME. Creates that folder or updates it with the experiment file, the metrics and
/// the newest complete, undamaged checkpoint; reports each damaged one on standard error. The
/// metrics and the experiment file of an older local run are replaced; its experiment file is kept
/// under another name if it differs. A local run that has this checkpoint or a newer one stays
/// unchanged. Throws std::invalid_argument if
/// there is no run at the address, replay::StoreError, and std::runtime_error if a process works in
/// the local run.
std::filesystem::path local_run(const std::string& run, const std::filesystem::path& runs);

} // namespace troupe::experiments::commands
