#pragma once

#include <filesystem>
#include <string>

namespace troupe::experiments {

/// The run that a restarted deployment resumes if there is anything to continue from: the newest
/// run below <runs>/<name>, provided that it has no final evaluation. Otherwise empty.
std::filesystem::path find_unfinished_run(const std::filesystem::path& runs,
                                          const std::string& name);

} // namespace troupe::experiments
