#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "env/compiled_model.hpp"
#include "env/spec.hpp"

namespace troupe::env {

/// One simulation: its own mjData over a shared compiled model. Its mjModel is a view of the
/// compiled one (sizes, options, pointers to the shared arrays); own_array() gives this Physics a
/// private copy of an array that an episode changes.
/// Used by one thread at a time. A MuJoCo error, or a warning raised while stepping (bad numbers,
/// full buffers), is a std::runtime_error that names the model; after it only reset() is allowed.
/// step() and forward() do not allocate (MuJoCo uses the arena of its mjData).
class Physics {
public:
  explicit Physics(std::shared_ptr<const CompiledModel> compiled);
  ~Physics();
  Physics(const Physics&) = delete;
  Physics& operator=(const Physics&) = delete;

  const std::string& name() const { return compiled_->name(); }
  const std::shared_ptr<const CompiledModel>& compiled() const { return compiled_; }
  const mjModel& model() const { return model_; }
  mjData& data() { return *data_; }
  const mjData& data() const { return *data_; }

  /// Sets the default state, then calls forward_without_actuation(), as dm_control resets.
  void reset();
  void forward();                   // derived quantities of the present state and controls
  void forward_without_actuation(); // the same while there are no meaningful controls yet

  /// For tasks that draw initial states until one fits: computes the positions of all bodies and
  /// the number of contacts (a full contact buffer is not an error), a small part of forward(). All
  /// other derived quantities are stale until the next forward().
  void place();
  int contacts();

  /// Takes `count` physics steps in dm_control's order: afterwards all position- and
  /// velocity-dependent quantities are those of the new state. Before the call they must be those
  /// of the present state, as they are after reset(), forward(), step() and load_state().
  void step(int count);

  /// Calls mj_step `count` times and nothing else: derived quantities are then those of the state
  /// before the last step. Benchmarks compare step() with it.
  void step_plain(int count);

  /// The number of the named object. Throws std::invalid_argument listing the existing names.
  int id(mjtObj type, std::string_view object) const;
  std::vector<std::string> names(mjtObj type) const; // "" for an object without a name
  std::span<const mjtNum> sensor(int sensor_id) const;

  /// A private copy of the model's array `field`, e.g. "geom_pos". The simulation uses it from the
  /// first call on. Throws std::invalid_argument if there is no such array of numbers.
  std::span<mjtNum> own_array(std::string_view field);
  std::span<float> own_float_array(std::string_view field);
  /// Sets the option `field`, e.g. "gravity" (3 numbers), for this Physics alone. Throws
  /// std::invalid_argument if there is no such option, or if it has a different number of values.
  void set_option(std::string_view field, std::span<const double> values);
  void share_arrays(); // restores the compiled model's arrays and options

  /// Saves the integration state, sensors, options and private arrays. After load_state() the
  /// simulation continues bit for bit as the saved one.
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  struct Own {
    void* field; // the pointer in model_ that was redirected: mjtNum** or float**
    std::string name;
    std::size_t element_bytes;
    void* shared;
    std::vector<std::byte> bytes;
  };
  template <typename T>
  std::span<T> own(std::string_view field);
  std::span<const std::byte> load_own(std::span<const std::byte> in);
  void check(const char* last_warning);

  std::shared_ptr<const CompiledModel> compiled_;
  mjModel model_;
  mjData* data_;
  std::vector<Own> own_;
};

/// The state of the simulation (qpos, qvel) and the controls of its actuators (ctrl).
inline std::span<const double> positions(const Physics& physics) {
  return {physics.data().qpos, static_cast<std::size_t>(physics.model().nq)};
}
inline std::span<double> positions(Physics& physics) {
  return {physics.data().qpos, static_cast<std::size_t>(physics.model().nq)};
}
inline std::span<const double> velocities(const Physics& physics) {
  return {physics.data().qvel, static_cast<std::size_t>(physics.model().nv)};
}
inline std::span<double> velocities(Physics& physics) {
  return {physics.data().qvel, static_cast<std::size_t>(physics.model().nv)};
}
inline std::span<const double> controls(const Physics& physics) {
  return {physics.data().ctrl, static_cast<std::size_t>(physics.model().nu)};
}

/// The range of each control; infinite if the model does not limit it.
ActionSpec control_bounds(const Physics& physics);

} // namespace troupe::env
