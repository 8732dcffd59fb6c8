#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/make/make.hpp"
#include "env/render/likeness.hpp"

namespace troupe::env {

/// What the pictures of one renderer must be like against OpenGL's.
inline constexpr double kSimilarityMean = .985;   // over tasks
inline constexpr double kSimilarityWorst = .975;  // of a task's mean over its states
inline constexpr double kDifferenceLevels = 1.5;  // mean absolute, of 255, of a task
inline constexpr double kSegmentationShare = .99; // equal, away from edges
inline constexpr double kDepthShare = .99;        // within kDepthTolerance, away from edges

struct LikenessOptions {
  PixelOptions pixels{.renderer = RendererKind::caster}; // what is compared with OpenGL
  int states = 100;
  std::uint64_t seed = 1;
  bool shapes = true; // depth and segmentation, too
  std::string models; // folder of the suite's XML files; empty: the build's
};

/// One renderer's pictures of a task against OpenGL's.
struct LikenessReport {
  std::string task;
  int pictures = 0;
  double similarity = 0;        // mean of the pictures'
  double worst_similarity = 1;  // of one picture
  std::uint64_t worst_seed = 0; // whose it was: see begin_random_state(); the step of a recording
  double difference = 0;        // levels, mean of the pictures'
  double worst_difference = 0;
  ShapeLikeness shapes;              // depth and segmentation, when asked for
  std::vector<std::string> failures; // one sentence each: what, how much, the limit

  bool passed() const { return failures.empty(); }
};

/// An episode begun with `seed` and up to 40 steps of random actions, a function of the seed alone.
void begin_random_state(Environment& environment, std::uint64_t seed);

/// Random states of a task of the suite or of any environment with physics behind it, those of
/// seeds seed, seed + 1, …. OpenGL's depths and segmentations are drawn with many facets and one
/// sample at the pixel's centre, as shapes are, not as coarsely as in its pictures. Throws what
/// make_environment() throws.
LikenessReport check_likeness(const std::string& task, const LikenessOptions& options);

/// Against the frames of a folder of recordings of dm_control (golden.hpp); no pictures when the
/// folder has no frames of the task.
LikenessReport check_recorded_likeness(const std::string& folder, const std::string& task,
                                       const LikenessOptions& options);

} // namespace troupe::env
