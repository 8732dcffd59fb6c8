#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/make/make.hpp"

namespace troupe::env {

/// How far our replay of one task is from a recording of the real dm_control. Observation and
/// reward errors are the largest |ours - theirs| / max(1, |theirs|). A frame's error is the mean
/// absolute difference in grey levels of 255.
struct GoldenReport {
  std::string task;
  int steps = 0;
  int probes = 0;
  int frames = 0; // number compared; 0 without OpenGL or without recorded frames
  double observation_error = 0;
  double reward_error = 0;
  double discount_error = 0;
  int other_step_types = 0; // steps that are mid here and last there, or vice versa
  double probe_error = 0;   // observations and rewards of random states
  double frame_error = 0;
  std::vector<std::string> failures; // one sentence each: what differs, by how much, the limit

  bool passed() const { return failures.empty(); }
};

/// The largest relative error; infinite if only one of two numbers is finite.
double relative_error(std::span<const double> ours, std::span<const double> theirs);

/// The value with three significant digits.
std::string short_text(double value);

/// Adds a failure to the report unless error <= limit.
void judge(GoldenReport& report, const std::string& what, double error, double limit);

inline constexpr double kGoldenTolerance = 1e-9;      // observations, rewards
inline constexpr double kGoldenProbeTolerance = 1e-6; // probes (they contain contact forces)
inline constexpr double kGoldenFrameTolerance = 2;    // grey levels

/// The tasks of <folder>/index.json, sorted.
struct GoldenIndex {
  std::vector<std::string> tasks;     // tasks that Troupe has
  std::vector<std::string> not_built; // tasks that it does not have
};

/// Throws std::runtime_error if the folder has no readable index.
GoldenIndex read_golden_index(const std::string& folder);

/// Replays the task's trajectory and probes and, with `gl`, its frames. Compares the spec with the
/// index if the folder has one. Throws std::runtime_error if a file is missing or malformed, or if
/// the requested OpenGL does not exist.
GoldenReport check_golden(const std::string& folder, const std::string& task,
                          const std::string& models = {}, std::optional<GlBackend> gl = {});

} // namespace troupe::env
