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

/// A task on a simulation: how an episode begins, its observations and rewards.
/// Stateless between calls except for constants of its model; whatever an episode randomises lives
/// in the Physics. Called by its one SuiteEnvironment; observe() and reward() do not allocate.
class Task {
public:
  virtual ~Task() = default;

  /// float64 arrays, in dm_control's order.
  virtual std::vector<ArraySpec> observations() const = 0;

  /// Sets the state of a new episode on a physics that was just reset, all randomness from
  /// `random`.
  virtual void initialize_episode(Physics& physics, Random& random) const = 0;

  /// Before the physics steps of a control step: the action, clipped to its bounds, becomes the
  /// control. A task that maps it otherwise, or changes the model as it runs, overrides this.
  virtual void before_step(Physics& physics, std::span<const double> action) const;

  /// After them, before the reward and what is seen.
  virtual void after_step(Physics&) const {}

  /// The discount with which the episode ends in this state; nothing while it continues.
  virtual std::optional<double> termination(const Physics&) const { return {}; }

  /// The arrays one after another.
  virtual void observe(const Physics& physics, std::span<double> out) const = 0;
  virtual double reward(const Physics& physics) const = 0;
};

inline constexpr double kNoTimeLimit = std::numeric_limits<double>::infinity();

/// One row of the table of tasks. The time limit and the control time step are in seconds of the
/// simulation; a control time step of 0 means one physics step.
struct TaskInfo {
  std::string name;
  std::string xml;
  std::string variant; // of the model, "" when it is the file's
  ModelEdit edit;
  double time_limit_seconds;
  double control_timestep_seconds;
  std::function<std::unique_ptr<Task>(Physics& physics)> make;
};

/// For TaskInfo::make: a T of the physics and these constants.
template <class T, auto... kConstants>
std::unique_ptr<Task> make_task_of(Physics& physics) {
  return std::make_unique<T>(physics, kConstants...);
}

std::span<const TaskInfo> all_tasks(); // sorted by name

/// A task of the table, or one with numbers in its name: "swimmer_swimmer9" (links, 3 to 100),
/// "lqr_lqr_4_2" (masses, 1 to 100, and motors, 1 to as many). Throws std::invalid_argument with
/// the nearest names, or the numbers that are possible.
TaskInfo find_task(const std::string& name);

/// A task of any size; nothing when `name` is not of that form.
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

/// Puts numbers into an observation one after another.
class ObservationWriter {
public:
  explicit ObservationWriter(std::span<double> out) : out_(out) {}
  void put(double value) {
    out_.front() = value;
    out_ = out_.subspan(1);
  }
  void put(const double* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      put(values[i]);
  }

private:
  std::span<double> out_;
};

/// Columns of a rotation matrix in mjData.xmat, row first: kXz is x of the body's z axis.
enum MatrixEntry { kXx = 0, kXz = 2, kZz = 8 };

inline double body_axis(const Physics& physics, int body, MatrixEntry entry) {
  return physics.data().xmat[9 * body + entry];
}

/// Makes `values` a direction uniform over the sphere of their dimension (a unit quaternion uniform
/// over rotations when there are four).
void random_direction(std::span<double> values, Random& random);

/// dm_control's randomisation of all joints: limited hinges and slides uniformly in their range,
/// unlimited hinges in [-pi, pi), unlimited slides stay; ball joints uniformly over rotations, or
/// about a uniform axis by an angle uniform up to their limit; free joints keep their place and
/// turn by a normalised quaternion of four numbers uniform in [0, 1).
void randomize_joints(Physics& physics, Random& random);

inline ArraySpec float64_array(const char* name, std::vector<std::int64_t> shape) {
  return {name, ElementType::float64, std::move(shape)};
}

} // namespace troupe::env
