#pragma once

#include "env/caster/flex.hpp"
#include "env/caster/frame.hpp"
#include "env/caster/height_field.hpp"
#include "env/caster/skin.hpp"

namespace troupe::env {
class CasterModel;
}

namespace troupe::env::caster {

inline constexpr float kOpaque = .995F;     // MuJoCo blends nothing from this alpha on
inline constexpr float kMostExponent = 128; // of OpenGL

/// The moving parts of a scene, which each caster owns.
struct MovingParts {
  std::vector<HeightField> fields; // one for each of the model's
  std::vector<Skin> skins;
  std::vector<Flex> flexes;

  explicit MovingParts(const CasterModel& shared);
  /// `scene` as MuJoCo lists the state that `data` is in.
  void update(const mjModel& model, const mjData& data, const mjvScene& scene);
};

/// The geom as a shape in the world, without rays and lights. False when it is not drawn or not
/// finite.
bool build_shape(const mjvGeom& geom, const CasterModel& shared, const MovingParts& parts,
                 const Camera& camera, Shape& shape);

} // namespace troupe::env::caster
