#include "env/wrappers/randomize.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::env {

namespace {

constexpr std::uint64_t kRandomizeStream =
    0x646f6d61696e; // independent of the task's random numbers

void check_amount(const char* key, double value, double most) {
  if (!(value >= 0 && value <= most))
    throw std::invalid_argument("randomization." + std::string(key) + ": " + std::to_string(value)
                                + " is out of range; it must be from 0 to " + std::to_string(most));
}

/// A random factor in [1 - amount, 1 + amount).
double factor(Random& random, double amount) {
  return random.uniform(1 - amount, 1 + amount);
}

/// Moves the first three numbers of a row by up to ± amount within [0, 1]; alpha is unchanged.
void move_colour(std::span<float> rgba, std::size_t row, Random& random, double amount) {
  for (std::size_t c = 0; c < 3; ++c) {
    float& level = rgba[4 * row + c];
    level = static_cast<float>(
        std::clamp(static_cast<double>(level) + random.uniform(-amount, amount), 0.0, 1.0));
  }
}

bool has_default_colour(std::span<const float> rgba,
                        std::size_t row) { // MuJoCo's default, which means no colour
  return rgba[4 * row] == 0.5F && rgba[4 * row + 1] == 0.5F && rgba[4 * row + 2] == 0.5F;
}

/// Moves row `row` of all these [n, 3] arrays by the same offset of up to ± amount along each axis.
template <std::size_t N>
void move_rows(Physics& physics, const char* const (&fields)[N], std::size_t row, Random& random,
               double amount) {
  double offset[3];
  for (double& axis : offset)
    axis = random.uniform(-amount, amount);
  for (const char* field : fields) {
    const std::span<mjtNum> numbers = physics.own_array(field);
    for (std::size_t axis = 0; axis < 3; ++axis)
      numbers[3 * row + axis] += offset[axis];
  }
}

} // namespace

Randomization random_colours(double amount) {
  check_amount("colours", amount, 1);
  return {"colours", {}, {"geom_rgba", "mat_rgba"}, [amount](Physics& physics, Random& random) {
            const std::span<float> materials = physics.own_float_array("mat_rgba");
            for (std::size_t i = 0; 4 * i < materials.size(); ++i)
              move_colour(materials, i, random, amount);
            const std::span<float> geoms = physics.own_float_array("geom_rgba");
            for (std::size_t i = 0; 4 * i < geoms.size(); ++i)
              if (physics.model().geom_matid[i] < 0 || !has_default_colour(geoms, i))
                move_colour(geoms, i, random, amount);
          }};
}

Randomization random_lights(double amount) {
  check_amount("lights", amount, 1);
  return {"lights",
          {"light_pos", "light_poscom0", "light_pos0"},
          {"light_diffuse"},
          [amount](Physics& physics, Random& random) {
            const std::span<float> diffuse = physics.own_float_array("light_diffuse");
            for (std::size_t i = 0; 3 * i < diffuse.size(); ++i) {
              const double brightness = factor(random, amount);
              for (std::size_t c = 0; c < 3; ++c)
                diffuse[3 * i + c] =
                    static_cast<float>(static_cast<double>(diffuse[3 * i + c]) * brightness);
              move_rows(physics, {"light_pos", "light_poscom0", "light_pos0"}, i, random, amount);
            }
          }};
}

Randomization random_cameras(double metres, double field_of_view) {
  check_amount("camera", metres, 10);
  check_amount("field_of_view", field_of_view, 0.9);
  return {"camera",
          {"cam_pos", "cam_poscom0", "cam_pos0", "cam_fovy"},
          {},
          [metres, field_of_view](Physics& physics, Random& random) {
            const std::span<mjtNum> angles = physics.own_array("cam_fovy");
            for (std::size_t i = 0; i < angles.size(); ++i) {
              const bool orthographic = physics.model().cam_projection[i] == mjPROJ_ORTHOGRAPHIC;
              const double wider = angles[i] * factor(random, field_of_view);
              angles[i] =
                  orthographic ? wider : std::min(wider, 170.0); // degrees; 180 would show nothing
              move_rows(physics, {"cam_pos", "cam_poscom0", "cam_pos0"}, i, random, metres);
            }
          }};
}

Randomization random_masses(double amount) {
  check_amount("masses", amount, 0.9);
  return {"masses",
          {"body_mass", "body_inertia", "body_subtreemass"},
          {},
          [amount](Physics& physics, Random& random) {
            const std::span<mjtNum> masses = physics.own_array("body_mass");
            const std::span<mjtNum> inertias = physics.own_array("body_inertia");
            const std::span<mjtNum> subtrees = physics.own_array("body_subtreemass");
            for (std::size_t i = 0; i < masses.size(); ++i) {
              const double times = factor(random, amount);
              masses[i] *= times;
              for (std::size_t axis = 0; axis < 3; ++axis)
                inertias[3 * i + axis] *= times;
            }
            std::copy(masses.begin(), masses.end(), subtrees.begin());
            for (std::size_t i = masses.size(); i-- > 1;) // parents precede their children
              subtrees[static_cast<std::size_t>(physics.model().body_parentid[i])] += subtrees[i];
          }};
}

Randomization random_friction(double amount) {
  check_amount("friction", amount, 1);
  return {"friction", {"geom_friction"}, {}, [amount](Physics& physics, Random& random) {
            const std::span<mjtNum> friction = physics.own_array("geom_friction");
            for (std::size_t i = 0; 3 * i < friction.size(); ++i) {
              const double times = factor(random, amount);
              for (std::size_t kind = 0; kind < 3; ++kind)
                friction[3 * i + kind] *= times;
            }
          }};
}

Randomize::Randomize(std::unique_ptr<Environment> wrapped, std::vector<Randomization> changes)
    : Wrapper(std::move(wrapped)), changes_(std::move(changes)) {
  if (physics() == nullptr)
    throw std::invalid_argument("randomization: environment " + spec_.name
                                + " has no physics model to change");
  for (const Randomization& change : changes_)
    own(change);
}

void Randomize::own(const Randomization& change) {
  const auto keep = [](auto& known, const std::string& field, const auto& values) {
    const bool there = std::any_of(known.begin(), known.end(),
                                   [&](const auto& other) { return other.field == field; });
    if (!there)
      known.push_back({field, {values.begin(), values.end()}});
  };
  try {
    for (const std::string& field : change.arrays)
      keep(arrays_, field, physics()->own_array(field));
    for (const std::string& field : change.float_arrays)
      keep(float_arrays_, field, physics()->own_float_array(field));
  } catch (const std::invalid_argument& problem) {
    throw std::invalid_argument("randomization '" + change.name + "': " + problem.what());
  }
}

TimeStep Randomize::reset(std::uint64_t seed, std::span<std::byte> observation) {
  Random random(mix_bits(seed ^ kRandomizeStream));
  for (const auto& nominal : arrays_)
    std::copy(nominal.values.begin(), nominal.values.end(),
              physics()->own_array(nominal.field).begin());
  for (const auto& nominal : float_arrays_)
    std::copy(nominal.values.begin(), nominal.values.end(),
              physics()->own_float_array(nominal.field).begin());
  for (const Randomization& change : changes_)
    change.draw(*physics(), random);
  return inner().reset(seed, observation);
}

} // namespace troupe::env
