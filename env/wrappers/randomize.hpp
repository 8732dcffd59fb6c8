#pragma once

#include <functional>

#include "env/physics.hpp"
#include "env/random.hpp"
#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// A property of the model that varies between episodes: the arrays it changes, and how they are
/// drawn. When `draw` is called, the arrays have the model's own values; it changes them through
/// Physics::own_array() and own_float_array(), takes all randomness from `random`, and must not
/// allocate.
struct Randomization {
  std::string name;                      // "masses", for messages
  std::vector<std::string> arrays;       // of mjtNum in mjModel: "body_mass"
  std::vector<std::string> float_arrays; // of float in mjModel: "geom_rgba"
  std::function<void(Physics& physics, Random& random)> draw;
};

// Ready-made ones. Each `amount` is 0 to 1 unless stated otherwise; other values throw
// std::invalid_argument.

/// Moves red, green and blue of every geom and material by up to ± amount, within [0, 1]. A geom
/// that has a material and no colour keeps the material's.
Randomization random_colours(double amount);
/// Multiplies every light's brightness by 1 ± amount and moves its position by up to ± amount
/// metres.
Randomization random_lights(double amount);
/// Moves every camera by up to ± metres along each axis (0 to 10) and multiplies its field of view
/// by 1 ± field_of_view (0 to 0.9).
Randomization random_cameras(double metres, double field_of_view);
/// Multiplies every body's mass and inertia by 1 ± amount (0 to 0.9). The constants that MuJoCo
/// derives from them (invweight0, dof_M0) keep the model's values, as if mjModel were written from
/// Python: mj_setConst() would write arrays that other simulations share.
Randomization random_masses(double amount);
/// Multiplies each geom's sliding, torsional and rolling friction by one factor, 1 ± amount.
Randomization random_friction(double amount);

/// At every reset(), draws all of `changes` in this order from the episode's seed, before the task
/// places its bodies. The arrays are private to this environment from the constructor on, and part
/// of the saved state. Throws std::invalid_argument if there is no physics or if the model has no
/// such array.
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
