#pragma once

#include <filesystem>
#include <string>

namespace troupe::experiments {

/// The run that a restarted deployment goes on with: the newest below <runs>/<name>, when it has a
/// complete checkpoint and no final evaluation; empty else.
std::filesystem::path find_unfinished_run(const std::filesystem::path& runs,
                                          const std::string& name);

} // namespace troupe::experiments
