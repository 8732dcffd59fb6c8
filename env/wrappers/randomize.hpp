#pragma once

#include <functional>

#include "env/physics.hpp"
#include "env/random.hpp"
#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Something about the model that differs from episode to episode: which of its arrays, and how
/// they are drawn. `draw` finds them as the model has them and changes them through
/// Physics::own_array and own_float_array, all randomness from `random`; it must not allocate.
struct Randomization {
  std::string name;                      // "masses", for messages
  std::vector<std::string> arrays;       // of mjModel, of mjtNum: "body_mass"
  std::vector<std::string> float_arrays; // of float: "geom_rgba"
  std::function<void(Physics& physics, Random& random)> draw;
};

// Ready ones. Each `amount` is 0 to 1 unless said otherwise; out of range is std::invalid_argument.

/// Every geom's and material's red, green and blue moved by up to ± amount, kept within [0, 1].
/// A geom that has a material and no colour keeps the material's.
Randomization random_colours(double amount);
/// Every light's brightness times 1 ± amount, its position moved by up to ± amount metres.
Randomization random_lights(double amount);
/// Every camera moved by up to ± metres along each axis (0 to 10), its field of view times 1 ±
/// field_of_view (0 to 0.9).
Randomization random_cameras(double metres, double field_of_view);
/// Every body's mass and inertia times 1 ± amount (0 to 0.9). The constants that regularise
/// constraints (invweight0) stay those of the model, as when mjModel is written from Python.
Randomization random_masses(double amount);
/// Every geom's sliding, torsional and rolling friction times one number 1 ± amount.
Randomization random_friction(double amount);

/// Draws all of `changes`, in this order, at every reset() from the episode's seed, before the task
/// places its bodies. The arrays are this environment's own from the constructor on and part of the
/// saved state. Throws std::invalid_argument: no physics, an array that is none of the model's.
class Randomize final : public Wrapper {
public:
  Randomize(std::unique_ptr<Environment> inner, std::vector<Randomization> changes);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;

private:
  template <typename T>
  struct Nominal {
    std::string field;
    std::vector<T> values;
  };
  void own(const Randomization& change);

  std::vector<Randomization> changes_;
  std::vector<Nominal<mjtNum>> arrays_;
  std::vector<Nominal<float>> float_arrays_;
};

} // namespace troupe::env
