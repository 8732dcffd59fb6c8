#pragma once

#include <filesystem>
#include <vector>

namespace troupe::experiments::commands {

/// Folders of files that are found by name: `experiments/<folder>` of the source tree, and
/// `share/troupe/<folder>` beside an installed program.
std::vector<std::filesystem::path> found_folders(const std::filesystem::path& folder);

/// Of experiments: with the control suite or files, with games, with Gym's MuJoCo tasks.
std::vector<std::filesystem::path> config_folders();

std::vector<std::filesystem::path> cluster_folders();

std::vector<std::filesystem::path> sweep_folders();

} // namespace troupe::experiments::commands
