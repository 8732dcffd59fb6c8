#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/physics.hpp"
#include "env/random.hpp"
#include "env/spec.hpp"

namespace troupe::env {

/// A task on a simulation: how an episode starts, its observations and its rewards. A task has no
/// state except for constants of its model; everything that an episode randomises is in the
/// Physics. Each task is used by one SuiteEnvironment. observe() and reward() do not allocate.
class Task {
public:
  virtual ~Task() = default;

  /// Returns the specs of float64 arrays, in dm_control's order.
  virtual std::vector<ArraySpec> observations(const Physics& physics) const = 0;

  /// Sets the initial state of an episode. The physics has just been reset. All randomness must
  /// come from `random`.
  virtual void initialize_episode(Physics& physics, Random& random) const = 0;

  /// Called before the physics steps of a control step. Sets the control to the action, which is
  /// clipped to its bounds. Tasks override this if they map actions differently or change the model
  /// during an episode.
  virtual void before_step(Physics& physics, std::span<const double> action) const;

  /// Called after the physics steps of a control step, before reward() and observe().
  virtual void after_step(Physics&) const {}

  /// Returns the discount if the episode ends in this state, otherwise nothing.
  virtual std::optional<double> termination(const Physics&) const { return {}; }

  /// Writes the arrays of observations(), one after the other.
  virtual void observe(const Physics& physics, std::span<double> out) const = 0;
  virtual double reward(const Physics& physics) const = 0;
};

inline constexpr double kNoTimeLimit = std::numeric_limits<double>::infinity();

/// A row of the table of tasks. The time limit and the control time step are in simulated seconds.
/// A control time step of 0 means one physics step.
struct TaskInfo {
  std::string name;
  std::string xml;
  std::string variant; // of the model; "" if the file is used unchanged
  ModelEdit edit;
  double time_limit_seconds;
  double control_timestep_seconds;
  std::function<std::unique_ptr<Task>(Physics& physics)> make;
};

/// A function for TaskInfo::make: makes a T from the physics and the constants.
template <class T, auto... kConstants>
std::unique_ptr<Task> make_task_of(Physics& physics) {
  return std::make_unique<T>(physics, kConstants...);
}

std::span<const TaskInfo> all_tasks(); // sorted by name

/// Returns a task of the table, or a task with numbers in its name: "swimmer_swimmer9" (3 to 100
/// links) or "lqr_lqr_4_2" (1 to 100 masses; motors from 1 to the number of masses). Throws
/// std::invalid_argument with the nearest names or the valid numbers.
TaskInfo find_task(const std::string& name);

/// Return a task of any size, or nothing if `name` does not have the domain's form.
std::optional<TaskInfo> find_lqr(const std::string& name);
std::optional<TaskInfo> find_swimmer(const std::string& name);

// One file per domain.
std::span<const TaskInfo> acrobot_tasks();
std::span<const TaskInfo> ball_in_cup_tasks();
std::span<const TaskInfo> cartpole_tasks();
std::span<const TaskInfo> cheetah_tasks();
std::span<const TaskInfo> dog_tasks();
std::span<const TaskInfo> finger_tasks();
std::span<const TaskInfo> fish_tasks();
std::span<const TaskInfo> hopper_tasks();
std::span<const TaskInfo> humanoid_tasks();
std::span<const TaskInfo> humanoid_cmu_tasks();
std::span<const TaskInfo> lqr_tasks();
std::span<const TaskInfo> manipulator_tasks();
std::span<const TaskInfo> pendulum_tasks();
std::span<const TaskInfo> point_mass_tasks();
std::span<const TaskInfo> quadruped_tasks();
std::span<const TaskInfo> reacher_tasks();
std::span<const TaskInfo> stacker_tasks();
std::span<const TaskInfo> swimmer_tasks();
std::span<const TaskInfo> walker_tasks();

/// Writes the numbers of an observation, one after the other.
class ObservationWriter {
public:
  explicit ObservationWriter(std::span<double> out) : out_(out) {}
  void put(double value) {
    out_.front() = value;
    out_ = out_.subspan(1);
  }
  void put(const double* values, std::size_t count) { put(std::span(values, count)); }
  void put(std::span<const double> values) {
    for (const double value : values)
      put(value);
  }

private:
  std::span<double> out_;
};

/// Indices of entries of a rotation matrix in mjData.xmat (row-major): kXz is the x component of
/// the body's z axis.
enum MatrixEntry { kXx = 0, kXz = 2, kZz = 8 };

inline double body_axis(const Physics& physics, int body, MatrixEntry entry) {
  return physics.data().xmat[9 * body + entry];
}

/// Sets `values` to a direction that is uniform on the unit sphere. Four values are a unit
/// quaternion that is uniform over rotations.
void random_direction(std::span<double> values, Random& random);

/// Randomises all joints as dm_control does. Limited hinges and slides are uniform in their range.
/// Unlimited hinges are uniform in [-pi, pi), and unlimited slides do not change. Ball joints are
/// uniform over rotations, or, if limited, turned about a uniform axis by an angle that is uniform
/// up to the limit. Free joints keep their position and get the normalised quaternion of four
/// numbers that are uniform in [0, 1).
void randomize_joints(Physics& physics, Random& random);

inline ArraySpec float64_array(const char* name, std::vector<std::int64_t> shape) {
  return {name, ElementType::float64, std::move(shape)};
}

} // namespace troupe::env
