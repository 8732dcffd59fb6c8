#pragma once

#include <filesystem>
#include <string>

namespace troupe::experiments {

/// The run that a restarted deployment resumes: the newest below <runs>/<name> if it has a complete
/// checkpoint and no final evaluation; otherwise empty.
std::filesystem::path find_unfinished_run(const std::filesystem::path& runs,
                                          const std::string& name);

} // namespace troupe::experiments
