#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "env/compiled_model.hpp"

namespace troupe::env {

/// One simulation: its own mjData over a shared compiled model. Its mjModel is a view of the
/// compiled one (sizes, options, pointers into the shared arrays); an array that an episode changes
/// is copied for this Physics alone by own_array().
/// One thread at a time. A MuJoCo error, or a warning raised while stepping (bad numbers, full
/// buffers), is a std::runtime_error that names the model; after it only reset() is allowed.
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

  /// The default state, then forward_without_actuation(), as dm_control resets.
  void reset();
  void forward();                   // derived quantities of the present state and control
  void forward_without_actuation(); // the same while there is no meaningful control yet

  /// For initial states that are drawn until they fit: positions of all bodies and the number of
  /// contacts (a full contact buffer is no error), a small part of forward(). All other derived
  /// quantities are stale until the next forward().
  void place();
  int contacts();

  /// `count` physics steps in dm_control's order: position- and velocity-dependent quantities are
  /// those of the new state afterwards. They must be those of the present state before, as after
  /// reset(), forward(), step() and load_state().
  void step(int count);

  /// mj_step alone, `count` times: derived quantities are then those of the state before the last
  /// step. Benchmarks compare step() with it.
  void step_plain(int count);

  /// Number of the named object; throws std::invalid_argument with the names there are.
  int id(mjtObj type, std::string_view object) const;
  std::vector<std::string> names(mjtObj type) const; // "" for an object without a name
  std::span<const mjtNum> sensor(int sensor_id) const;

  /// This Physics's own copy of the model's array `field`, e.g. "geom_pos"; from the first call on
  /// the simulation uses it. Throws std::invalid_argument when there is no such array of numbers.
  std::span<mjtNum> own_array(std::string_view field);
  std::span<float> own_float_array(std::string_view field);
  /// The option `field`, e.g. "gravity" (3 numbers), of this Physics alone. Throws
  /// std::invalid_argument when there is no such option, or not of that many numbers.
  void set_option(std::string_view field, std::span<const double> values);
  void share_arrays(); // arrays and options back to the compiled model's

  /// The integration state, sensors, options and own arrays: after load_state() the simulation
  /// continues bit for bit as the saved one.
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

} // namespace troupe::env
