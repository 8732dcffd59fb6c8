#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/gym/options.hpp"
#include "env/physics.hpp"
#include "env/random.hpp"
#include "env/spec.hpp"

namespace troupe::env::gym {

/// The inputs of a task's reward, in addition to the physics after the step.
struct GymStep {
  std::span<const double> action; // as applied
  double velocity = 0;            // change of position() during the step, metres/second
  bool healthy = true;            // GymTask::healthy() after the step
};

/// Turns a simulation into one of Gym's tasks. As in Gym, the quantities that MuJoCo derives (body
/// positions, contact forces) are from the last evaluation inside mj_step, which is slightly older
/// than qpos and qvel. A task does not change after construction, and only the constructor
/// allocates.
class GymTask {
public:
  virtual ~GymTask() = default;

  /// Returns the specs of float64 arrays, which are Gym's flat observation when concatenated.
  virtual std::vector<ArraySpec> observations(const Physics& physics) const = 0;

  /// Returns the names of the parts of the reward.
  virtual std::vector<const char*> reward_parts() const = 0;

  /// Whether the task reads cfrc_ext. If so, mj_rnePostConstraint is called after each step to fill
  /// it.
  virtual bool reads_contact_forces() const { return false; }

  /// Changes qpos and qvel from the model's defaults to the initial state of an episode.
  virtual void initialize_episode(Physics& physics, Random& random) const = 0;

  /// The x coordinate of the part that moves forward, in metres. Read before and after a step.
  virtual double position(const Physics&) const { return 0; }

  /// Gym's "healthy". It affects the reward and, in most tasks, the end of the episode.
  virtual bool healthy(const Physics&) const { return true; }

  /// Whether an episode ends when the task is not healthy.
  virtual bool terminates() const { return true; }

  /// Fills `parts` and returns the reward.
  virtual double reward(const Physics& physics, const GymStep& step,
                        std::span<RewardPart> parts) const = 0;

  virtual void observe(const Physics& physics, std::span<double> out) const = 0;
};

/// One task of the table.
struct GymTaskInfo {
  std::string name;                   // "Ant-v5"
  std::vector<GymOptionRule> options; // from with_common_options()
  std::unique_ptr<GymTask> (*make)(const GymOptionValues&, const Physics&);
};

/// A function for GymTaskInfo::make: makes a T from the options, the physics and the constants.
template <class T, auto... kConstants>
std::unique_ptr<GymTask> make_gym_task_of(const GymOptionValues& options, const Physics& physics) {
  return std::make_unique<T>(options, physics, kConstants...);
}

/// Returns `own` and the options of every task: xml_file, frame_skip, max_episode_steps.
std::vector<GymOptionRule> with_common_options(std::vector<GymOptionRule> own, const char* xml_file,
                                               const char* frame_skip,
                                               const char* max_episode_steps = "1000");

// One file per task.
GymTaskInfo ant_v5();
GymTaskInfo half_cheetah_v5();
GymTaskInfo hopper_v5();
GymTaskInfo humanoid_v5();
GymTaskInfo humanoid_standup_v5();
GymTaskInfo inverted_double_pendulum_v5();
GymTaskInfo inverted_pendulum_v5();
GymTaskInfo pusher_v5();
GymTaskInfo reacher_v5();
GymTaskInfo swimmer_v5();
GymTaskInfo walker2d_v5();

/// Throws std::invalid_argument if the model, which may be the user's own, has fewer positions or
/// velocities than the task reads.
void require_sizes(const Physics& physics, int positions, int velocities);

/// Add a random number to each value, uniform in [-scale, scale) or normally distributed.
void add_uniform_noise(std::span<double> values, double scale, Random& random);
void add_normal_noise(std::span<double> values, double standard_deviation, Random& random);

double sum_of_squares(std::span<const double> values);

/// Gym's healthy ranges are open intervals, except for the ant's.
inline bool inside(double value, const GymRange& range) {
  return range.low < value && value < range.high;
}

/// Writes the numbers of an observation, one after the other.
class GymObservationCursor {
public:
  explicit GymObservationCursor(std::span<double> out) : next_(out.data()) {}
  void put(double value) { *next_++ = value; }
  void put(std::span<const double> values);
  void put_clipped(std::span<const double> values, double low, double high);
  void put_difference(const double* a, const double* b, std::size_t count);

private:
  double* next_;
};

ArraySpec gym_array(const char* name, std::size_t elements);

} // namespace troupe::env::gym
