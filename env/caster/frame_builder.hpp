#pragma once

#include "env/caster/caster_model.hpp"
#include "env/caster/frame.hpp"
#include "env/caster/height_field.hpp"
#include "env/caster/skin.hpp"

namespace troupe::env::caster {

/// What moves or changes and is not one formula: each caster's own.
struct MovingParts {
  std::vector<HeightField> fields; // one for each of the model's
  std::vector<Skin> skins;

  explicit MovingParts(const CasterModel& shared);
  void update(const mjModel& model, const mjData& data);
};

/// Fills `frame` for a picture of frame.width x
/// frame.height of MuJoCo's scene: cameras, lights and shapes into the shapes' own frames. Shapes
/// that are not finite are left out.
void build_shapes(const mjModel& model, const mjvScene& scene, const CasterModel& shared,
                  const MovingParts& parts, Frame& frame);

/// Which blocks see which shapes, mirrored shapes and shadows. After build_shapes().
void build_spans(Frame& frame);

/// Which shapes may put others into shadow. After build_shapes().
void build_casters(Frame& frame);

} // namespace troupe::env::caster
