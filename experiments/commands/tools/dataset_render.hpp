#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::experiments::commands {

/// A data set of scenes from the control suite. A class is a task; a row is a picture of one of its
/// states.
struct SceneOptions {
  std::filesystem::path out{};
  std::vector<std::string> classes{}; // names of tasks; empty: default_scene_classes()
  std::int64_t rows = 100;            // rows of each class
  int size = 64;                      // height and width, in pixels
  std::uint64_t seed = 1;
  std::string split = "train";    // or "validation", which shares no seeds with "train"
  std::string layout = "folder";  // or "tar", "cifar10", "cifar100", "idx", "csv"
  int quality = 95;               // JPEG quality; 0: PNG
  std::int64_t shard_rows = 1000; // rows in each tar file
  double colours = 0.3;           // maximum shift of each colour level, as a fraction
  double lights = 0.3;
  /// Maximum shift of the cameras and maximum change of their field of view, as fractions.
  double views = 0.15;
  int steps = 50;      // maximum number of random actions after the reset
  bool effects = true; // shadows, reflections, smooth edges
  int threads = 1;
  std::string models{};
};

/// 20 tasks that look different.
const std::vector<std::string>& default_scene_classes();

/// Renders all rows into a temporary folder next to `out`, then renames it. The bytes depend only
/// on the options, not on threads or timing. Throws std::invalid_argument for contradictory options
/// or an existing output, and std::runtime_error if it cannot write.
void render_scenes(const SceneOptions& options);

void add_dataset_render(CLI::App& dataset); // subcommand of `dataset`

} // namespace troupe::experiments::commands
