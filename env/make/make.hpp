#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/environment_config.hpp"
#include "env/suite/task_names.hpp"

namespace troupe::env {

/// Makes the task with its wrappers, innermost first: task -> time limit -> episode log ->
/// randomisation -> actions in [-1, 1] -> action clip, rescaled -> action noise -> action repeat ->
/// reward scale -> reward clip -> pixels, dictionary or flat states -> normalisation -> frame
/// stack. Wrappers that are not configured are absent.
///
/// The observation is one array: "pixels" uint8 [stack*cameras*channels, height, width] or "state"
/// float32 [stack*n]. It has several only if `observations` names them. An environment whose only
/// array is a picture (uint8 [channels, height, width]) keeps it. Throws std::invalid_argument
/// (unknown task with the nearest names, sizes out of range, no such camera with the list of
/// cameras) or std::runtime_error (missing model file, OpenGL needed and not available, an
/// unreachable remote peer).
std::unique_ptr<Environment> make_environment(const EnvironmentConfig& config);

/// Adds these wrappers to `bare`, an environment of this configuration without any wrapper.
std::unique_ptr<Environment> wrap_environment(std::unique_ptr<Environment> bare,
                                              const EnvironmentConfig& config);

/// The deadlines that this environment itself keeps in a step or reset: those of task "remote", 0
/// of others. Throws std::invalid_argument if one of them is out of range.
std::chrono::milliseconds own_deadlines(const EnvironmentConfig& config);

/// Makes the environment without any wrapper from the task, plugin, options and models.
std::unique_ptr<Environment> make_bare(const EnvironmentConfig& config);

/// Makes a suite task without wrappers: float64 observations by name in dm_control's order, the
/// task's own bounds.
std::unique_ptr<Environment> make_task(const std::string& task, const std::string& models = {});

/// The sorted names of all tasks that need no plug-in: the suite's, Gym's, the classic ones,
/// MinAtar's, tasks with goals and those linked into this program. ("remote", an environment at
/// options endpoint=…, is not among them.)
std::vector<std::string> environment_names();

/// Whether `task` is one of environment_names(), "remote", or a suite task with another number in
/// its name.
bool is_environment(const std::string& task);

} // namespace troupe::env
