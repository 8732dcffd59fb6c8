#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::experiments::commands {

/// A data set of scenes of the control suite: a class is a task, a row a picture of a state of it.
struct SceneOptions {
  std::filesystem::path out{};
  std::vector<std::string> classes{}; // tasks; empty: default_scene_classes()
  std::int64_t rows = 100;            // of each class
  int size = 64;                      // height and width, in pixels
  std::uint64_t seed = 1;
  std::string split = "train";    // or "validation", which shares no seed with it
  std::string layout = "folder";  // "tar", "cifar10", "cifar100", "idx", "csv"
  int quality = 95;               // of JPEG; 0: PNG
  std::int64_t shard_rows = 1000; // of a tar
  double colours = 0.3;           // how far each level of a colour moves, of 1
  double lights = 0.3;
  double views = 0.15; // how far cameras move, of what they see, and by how much they see more
  int steps = 50;      // at most so many random actions after the episode's first state
  bool effects = true; // shadows, reflections, smooth edges
  int threads = 1;
  std::string models{};
};

/// 20 tasks that differ in what is seen.
const std::vector<std::string>& default_scene_classes();

/// Renders all rows into a temporary folder beside `out`, then renames it. The bytes depend only on
/// the options, not on threads or time. Throws std::invalid_argument for contradicting options or
/// an existing output, std::runtime_error if it cannot write.
void render_scenes(const SceneOptions& options);

void add_dataset_render(CLI::App& dataset); // below `dataset`

} // namespace troupe::experiments::commands
