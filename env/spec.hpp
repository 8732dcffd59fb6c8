#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe::env {

enum class ElementType : std::uint8_t { uint8, float32, float64, int64 };

std::size_t element_bytes(ElementType type);
const char* element_name(ElementType type); // "uint8", …

/// The name, element type and shape of one array, e.g. {"pixels", uint8, [9, 84, 84]} (channels
/// first).
struct ArraySpec {
  std::string name;
  ElementType type = ElementType::float32;
  std::vector<std::int64_t> shape;

  std::size_t elements() const;
  std::size_t bytes() const { return elements() * element_bytes(type); }
  /// Whether this is a picture: uint8 [channels, height, width].
  bool is_picture() const { return type == ElementType::uint8 && shape.size() == 3; }
  bool operator==(const ArraySpec&) const = default;
};

/// An action is a vector of numbers. Each is either continuous within its bounds or a choice: one
/// of the whole numbers 0 to n - 1.
struct ActionSpec {
  std::vector<double> minimum;
  std::vector<double> maximum;
  /// [size] n of each choice, whose bounds are 0 and n - 1; 0 where continuous. Empty: all are
  /// continuous.
  std::vector<std::int64_t> choices = {};

  std::size_t size() const { return minimum.size(); }
  /// n if number i is a choice, else 0.
  std::int64_t choices_of(std::size_t i) const { return choices.empty() ? 0 : choices[i]; }
  bool is_continuous() const; // no number is a choice
  bool operator==(const ActionSpec&) const = default;
};

/// An action of one number, a choice of n.
ActionSpec one_of(std::int64_t n);

/// Describes what is wrong with the action, "" if nothing: sizes that differ, a minimum that is not
/// below the maximum, a choice of fewer than 2 or with other bounds than 0 and n - 1.
std::string problem_of(const ActionSpec& action);

/// The outcome of a step in a task with goals.
struct GoalOutcome {
  double reward = 0;
  bool terminated = false;
};

/// A task whose reward and termination depend on a goal. The observation contains both the achieved
/// and the desired goal: `size` numbers each, at these offsets among all its numbers.
struct GoalSpec {
  std::int64_t achieved = 0;
  std::int64_t desired = 0;
  std::int64_t size = 0; // 0: the task has no goals
  /// The outcome of a step that led to `achieved` when `desired` was the goal. Any thread may call
  /// it.
  std::function<GoalOutcome(std::span<const float> achieved, std::span<const float> desired)>
      outcome = {};
};

/// What an environment promises. Its observation is one block of bytes that holds the arrays in
/// this order, each at an offset that is a multiple of 8.
struct EnvironmentSpec {
  std::string name; // "cartpole_balance"
  std::vector<ArraySpec> observations;
  ActionSpec action;
  std::int64_t episode_steps = 0; // steps of this environment until truncation; 0: no limit
  std::int64_t action_repeat = 1; // environment steps (of the simulator's control loop) per step()
  int frame_stack = 1;            // frames in each array for which stacks() is true, oldest first
  double control_timestep_seconds = 0;
  bool saves_state = true; // false: save_state() throws; a resumed run begins a new episode
  GoalSpec goal = {};      // refers to the observations and rewards of this spec

  std::size_t observation_bytes() const;
  std::size_t observation_offset(std::size_t index) const;
  /// Whether frame_stack applies to this array: to all arrays, or to the pictures only if there are
  /// any.
  bool stacks(std::size_t index) const;
};

} // namespace troupe::env
