#pragma once

#include <filesystem>
#include <vector>

namespace troupe::experiments::commands {

/// Folders of files that are found by name: `share/troupe/<folder>` beside the program's folder, as
/// it is installed, or in it, where a build has links to experiments/.
std::vector<std::filesystem::path> found_folders(const std::filesystem::path& folder);

/// Of experiments: with the control suite or files, with games, with Gym's MuJoCo tasks.
std::vector<std::filesystem::path> config_folders();

std::vector<std::filesystem::path> cluster_folders();

std::vector<std::filesystem::path> sweep_folders();

} // namespace troupe::experiments::commands
