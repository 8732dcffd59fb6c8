#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/make/make.hpp"
#include "env/render/likeness.hpp"

namespace troupe::env {

/// Limits on how much a renderer's pictures may differ from OpenGL's.
inline constexpr double kSimilarityMean = .985;   // structural similarity, mean over tasks
inline constexpr double kSimilarityWorst = .975;  // of a task, mean over its states
inline constexpr double kDifferenceLevels = 1.5;  // mean absolute, of 255, of a task
inline constexpr double kSegmentationShare = .99; // share that is equal, away from edges
inline constexpr double kDepthShare = .99;        // share within kDepthTolerance, away from edges

struct LikenessOptions {
  PixelOptions pixels{.renderer = RendererKind::caster}; // what is compared with OpenGL
  int states = 100;
  std::uint64_t seed = 1;
  bool shapes = true; // also compare depth and segmentation
  std::string models; // folder of the suite's XML files; empty: the build's
};

/// How one renderer's pictures of a task compare with OpenGL's.
struct LikenessReport {
  std::string task;
  int pictures = 0;
  double similarity = 0;        // mean over the pictures
  double worst_similarity = 1;  // of the worst picture
  std::uint64_t worst_seed = 0; // seed of that picture's state (begin_random_state()), or the step
                                // of a recording
  double difference = 0;        // grey levels, mean over the pictures
  double worst_difference = 0;
  ShapeLikeness shapes;              // depth and segmentation, if compared
  std::vector<std::string> failures; // one sentence each: what differs, by how much, the limit

  bool passed() const { return failures.empty(); }
};

/// Begins an episode with `seed` and takes up to 40 random steps. The state depends only on the
/// seed.
void begin_random_state(Environment& environment, std::uint64_t seed);

/// Compares random states of a task, from the suite or any other environment with physics; the
/// seeds are seed, seed + 1, …. OpenGL draws depth and segmentation with many facets and one sample
/// at the centre of each pixel, as exact shapes, not as coarsely as in its pictures. Throws what
/// make_environment() throws.
LikenessReport check_likeness(const std::string& task, const LikenessOptions& options);

/// Compares with the frames in a folder of dm_control recordings (golden.hpp). The report has no
/// pictures if the folder has no frames of the task.
LikenessReport check_recorded_likeness(const std::string& folder, const std::string& task,
                                       const LikenessOptions& options);

} // namespace troupe::env
