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

/// Selects the geoms that rays can hit. The options have the meaning of mj_ray's arguments.
struct RayQueryOptions {
  std::array<bool, mjNGROUP> groups{true, true, true, true, true, true};
  bool statics = true;                              // whether to include geoms fixed to the world
  int exclude_body = -1;                            // for example the sensor's own; -1 for none
  float cutoff = std::numeric_limits<float>::max(); // hits at larger distances are ignored
};

/// Finds where rays from any point in any direction first hit a model's geoms, for range finders,
/// lidar and lines of sight.
///
/// As with mj_ray, surfaces are also hit from inside, planes only from their front, and invisible
/// geoms never. Unlike in mj_ray, the surface of a signed distance field is its mesh, and a height
/// field has no floor at z = 0 inside it. Flexes and skins are ignored.
///
/// A query is not thread-safe, but any number of queries may run in parallel. Distances do not
/// depend on the width of the processor's vectors.
class RayQuery {
public:
  explicit RayQuery(std::shared_ptr<const CasterModel> model);

  /// Reads the geoms of the state. Throws std::invalid_argument if the model does not have
  /// exclude_body or the cutoff is not positive.
  void update(const mjModel& model, const mjData& data, const RayQueryOptions& options);

  /// Casts rays. `origins` and `directions` are [rays, 3] in the world frame; `origins` may also be
  /// [3], for all rays. `distances` is [rays], in multiples of the direction's length, and `geoms`
  /// is [rays]; both are -1 where a ray hits nothing. Rays that are not finite or have a zero
  /// direction hit nothing. Throws std::invalid_argument if the sizes do not match.
  void cast(std::span<const double> origins, std::span<const double> directions,
            std::span<float> distances, std::span<std::int32_t> geoms);

private:
  caster::SolidSet solids_from(const std::array<double, 3>& begin);

  std::shared_ptr<const CasterModel> shared_;
  std::vector<caster::HeightField> fields_;
  std::vector<caster::Solid> solids_;
  std::vector<float> balls_; // the solids' bounding spheres
  float cutoff_ = 0;
  std::vector<float> rays_; // origins and directions, one array per coordinate
};

} // namespace troupe::env
