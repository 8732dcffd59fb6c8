#pragma once

#include <filesystem>
#include <vector>

namespace troupe::experiments::commands {

/// Where experiments are found by name: experiments/configs of the source tree, and
/// share/troupe/configs beside an installed program.
inline std::vector<std::filesystem::path> config_folders() {
  std::vector<std::filesystem::path> folders = {TROUPE_CONFIG_DIR};
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  folders.push_back(program.parent_path().parent_path() / "share/troupe/configs");
  return folders;
}

/// Where cluster files are found by name.
inline std::vector<std::filesystem::path> cluster_folders() {
  auto folders = config_folders();
  for (auto& folder : folders) {
    folder = folder.parent_path() / "clusters";
  }
  return folders;
}

/// Where sweeps are found by name.
inline std::vector<std::filesystem::path> sweep_folders() {
  auto folders = config_folders();
  for (auto& folder : folders) {
    folder /= "sweeps";
  }
  return folders;
}

} // namespace troupe::experiments::commands
