#pragma once

#include <filesystem>
#include <vector>

namespace troupe::env {

/// The file that this code was loaded from: the program, or a library such as Python's extension
/// module.
std::filesystem::path own_file();

/// Where files of a package may be whose code is in `object`: `share/troupe/<name>` beside its
/// folder (bin/troupe) or in it (a build, a Python package).
std::vector<std::filesystem::path> shared_folders(const std::filesystem::path& object,
                                                  const std::filesystem::path& name);

} // namespace troupe::env
