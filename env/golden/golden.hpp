#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/make/make.hpp"

namespace troupe::env {

/// How far our replay of one task is from a recording of the real dm_control. Observation and
/// reward errors are |ours - theirs| / max(1, |theirs|), the largest of all; a frame's error is the
/// mean absolute difference in grey levels of 255.
struct GoldenReport {
  std::string task;
  int steps = 0;
  int probes = 0;
  int frames = 0; // compared; 0 when no OpenGL was asked for or the recording has none
  double observation_error = 0;
  double reward_error = 0;
  double discount_error = 0;
  int other_step_types = 0; // steps that are mid here and last there, or the other way round
  double probe_error = 0;   // observations and rewards of random states
  double frame_error = 0;
  std::vector<std::string> failures; // one sentence each: what differs, by how much, the limit

  bool passed() const { return failures.empty(); }
};

/// The largest relative error; infinite where only one of two numbers is finite.
double relative_error(std::span<const double> ours, std::span<const double> theirs);

/// Three significant digits.
std::string short_text(double value);

/// Adds a failure to the report unless error <= limit.
void judge(GoldenReport& report, const std::string& what, double error, double limit);

inline constexpr double kGoldenTolerance = 1e-9;      // observations, rewards
inline constexpr double kGoldenProbeTolerance = 1e-6; // probes (they hold contact forces)
inline constexpr double kGoldenFrameTolerance = 2;    // grey levels

/// Tasks of <folder>/index.json, sorted.
struct GoldenIndex {
  std::vector<std::string> tasks;     // that we have
  std::vector<std::string> not_built; // that we do not have
};

/// Throws std::runtime_error when the folder has no readable index.
GoldenIndex read_golden_index(const std::string& folder);

/// Replays the task's trajectory and probes, and with `gl` its frames; compares the spec with the
/// index where the folder has one. Throws std::runtime_error
/// when a file is missing or malformed, or the OpenGL asked for does not exist.
GoldenReport check_golden(const std::string& folder, const std::string& task,
                          const std::string& models = {}, std::optional<GlBackend> gl = {});

} // namespace troupe::env
