#pragma once

#include <filesystem>
#include <vector>

namespace troupe::experiments::commands {

/// The folders in which files are looked up by name: `share/troupe/<folder>` next to the program's
/// folder (an installation) or inside it (a build, which links to experiments/).
std::vector<std::filesystem::path> found_folders(const std::filesystem::path& folder);

/// The folders of experiment files: configs/ and its subfolders games/, gym/ and recipes/.
std::vector<std::filesystem::path> config_folders();

std::vector<std::filesystem::path> cluster_folders();

std::vector<std::filesystem::path> sweep_folders();

} // namespace troupe::experiments::commands
