#pragma once

#include <filesystem>
#include <vector>

namespace troupe::env {

/// The file that contains this code: the program, or a library such as the Python extension module.
std::filesystem::path own_file();

/// The folders that may hold files of the package whose code is in `object`: `share/troupe/<name>`
/// beside the object's folder (bin/troupe) or inside it (a build, a Python package).
std::vector<std::filesystem::path> shared_folders(const std::filesystem::path& object,
                                                  const std::filesystem::path& name);

} // namespace troupe::env
