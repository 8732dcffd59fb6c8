#pragma once

#include <filesystem>
#include <string>

namespace troupe::experiments {

/// The run that a restarted deployment resumes if it has anything to continue from: the newest
/// below <runs>/<name> if it has no final evaluation; otherwise empty.
std::filesystem::path find_unfinished_run(const std::filesystem::path& runs,
                                          const std::string& name);

} // namespace troupe::experiments
