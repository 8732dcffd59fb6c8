#include "experiments/commands/folders.hpp"

#include <system_error>

namespace troupe::experiments::commands {

std::vector<std::filesystem::path> found_folders(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  return {program.parent_path() / "share/troupe" / folder, program / "share/troupe" / folder};
}

std::vector<std::filesystem::path> config_folders() {
  auto folders = found_folders("configs");
  for (const char* more : {"configs/games", "configs/gym"})
    for (const auto& folder : found_folders(more))
      folders.push_back(folder);
  return folders;
}

std::vector<std::filesystem::path> cluster_folders() {
  return found_folders("clusters");
}

std::vector<std::filesystem::path> sweep_folders() {
  return found_folders("configs/sweeps");
}

} // namespace troupe::experiments::commands
