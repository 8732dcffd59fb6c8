#pragma once

#include <memory>
#include <span>
#include <vector>

#include "env/physics.hpp"
#include "env/random.hpp"
#include "env/spec.hpp"

namespace troupe::env {

/// What makes a task of a simulation: how an episode begins, what is seen, what is rewarded.
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

  /// The arrays one after another.
  virtual void observe(const Physics& physics, std::span<double> out) const = 0;
  virtual double reward(const Physics& physics) const = 0;
};

/// One row of the table of tasks. The time limit and the control time step are in seconds of the
/// simulation; a control time step of 0 means one physics step.
struct TaskInfo {
  const char* name;
  const char* xml;
  const char* variant; // of the model, "" when it is the file's
  ModelEdit edit;
  double time_limit_seconds;
  double control_timestep_seconds;
  std::unique_ptr<Task> (*make)(Physics& physics);
};

std::span<const TaskInfo> all_tasks(); // sorted by name

/// Throws std::invalid_argument with the nearest names.
const TaskInfo& find_task(const std::string& name);

// One file per domain.
std::span<const TaskInfo> ball_in_cup_tasks();
std::span<const TaskInfo> cartpole_tasks();
std::span<const TaskInfo> cheetah_tasks();
std::span<const TaskInfo> pendulum_tasks();
std::span<const TaskInfo> reacher_tasks();
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

/// Limited hinges and slides uniformly in their range, unlimited hinges in [-pi, pi); other joints
/// stay. (The suite's ball and free joints are not in our domains: std::logic_error.)
void randomize_joints(Physics& physics, Random& random);

inline ArraySpec float64_array(const char* name, std::vector<std::int64_t> shape) {
  return {name, ElementType::float64, std::move(shape)};
}

} // namespace troupe::env
