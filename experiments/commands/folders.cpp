#include "experiments/commands/folders.hpp"

#include "env/own_file.hpp"

namespace troupe::experiments::commands {

std::vector<std::filesystem::path> found_folders(const std::filesystem::path& folder) {
  return env::shared_folders(env::own_file(), folder);
}

std::vector<std::filesystem::path> config_folders() {
  auto folders = found_folders("configs");
  for (const char* more : {"configs/games", "configs/gym", "configs/recipes"})
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
