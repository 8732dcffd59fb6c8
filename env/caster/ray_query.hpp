#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "env/caster/height_field.hpp"
#include "env/caster/ray_caster.hpp"
#include "env/caster/solid.hpp"

namespace troupe::env {

/// Which geoms rays meet, as mj_ray's arguments say.
struct RayQueryOptions {
  std::array<bool, mjNGROUP> groups{true, true, true, true, true, true};
  bool statics = true;                              // geoms that are fixed to the world
  int exclude_body = -1;                            // the sensor's own, say
  float cutoff = std::numeric_limits<float>::max(); // farther hits do not count
};

/// Where rays from any point in any direction first meet a model's geoms: range finders, lidar,
/// lines of sight. As mj_ray defines it: surfaces from inside, too, planes from their front alone,
/// nothing that is invisible. Unlike there, signed distance fields are met as their meshes, and a
/// height field has no floor inside, at z = 0. Flexes and skins are left out.
///
/// One thread at a time each; any number of them in parallel. Distances do not depend on the width
/// of the processor's vectors.
class RayQuery {
public:
  explicit RayQuery(std::shared_ptr<const CasterModel> model);

  /// Takes over the state's geoms. Throws std::invalid_argument on a body that the model does not
  /// have.
  void update(const mjModel& model, const mjData& data, const RayQueryOptions& options);

  /// `origins` (or [3], of all) and `directions` are [rays, 3] in the world; `distances` [rays] in
  /// lengths of the direction, -1 where nothing is met; `geoms` [rays], -1 likewise. Rays that are
  /// not finite or have no direction meet nothing. Throws std::invalid_argument when the sizes
  /// differ.
  void cast(std::span<const double> origins, std::span<const double> directions,
            std::span<float> distances, std::span<std::int32_t> geoms);

private:
  caster::SolidSet solids_from(const std::array<double, 3>& begin);

  std::shared_ptr<const CasterModel> shared_;
  std::vector<caster::HeightField> fields_;
  std::vector<caster::Solid> solids_;
  std::vector<float> balls_; // around them
  float cutoff_ = 0;
  std::vector<float> rays_; // origins and directions, one coordinate after the other
};

} // namespace troupe::env
