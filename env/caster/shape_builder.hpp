#pragma once

#include <optional>

#include "env/caster/flex.hpp"
#include "env/caster/frame.hpp"
#include "env/caster/height_field.hpp"
#include "env/caster/skin.hpp"

namespace troupe::env {
class CasterModel;
}

namespace troupe::env::caster {

inline constexpr float kOpaque = .995F;     // MuJoCo does not blend alphas from here on
inline constexpr float kMostExponent = 128; // OpenGL's limit

/// The moving parts of a scene. Each caster has its own.
struct MovingParts {
  std::vector<HeightField> fields; // one per height field of the model
  std::vector<Skin> skins;
  std::vector<Flex> flexes;

  explicit MovingParts(const CasterModel& shared);
  /// Reads the state in `data`, for which MuJoCo has made `scene`.
  void update(const mjModel& model, const mjData& data, const mjvScene& scene);
};

/// The kind of shape that draws geoms of this type (mjtGeom); empty if they are not drawn.
std::optional<ShapeKind> shape_kind(int geom_type);

/// Builds the shape of a geom in the world frame, without rays and lights. Returns false if the
/// geom is not drawn or not finite.
bool build_shape(const mjvGeom& geom, const CasterModel& shared, const MovingParts& parts,
                 const Camera& camera, Shape& shape);

} // namespace troupe::env::caster
