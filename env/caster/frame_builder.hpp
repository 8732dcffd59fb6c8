#pragma once

#include "env/caster/caster_model.hpp"
#include "env/caster/frame.hpp"
#include "env/caster/shape_builder.hpp"

namespace troupe::env::caster {

/// Fills `frame` for a picture of frame.width x frame.height of MuJoCo's scene: cameras, lights and
/// shapes into the shapes' own frames. Shapes that are not finite are left out.
void build_shapes(const mjModel& model, const mjvScene& scene, const CasterModel& shared,
                  const MovingParts& parts, Frame& frame);

/// Which blocks see which shapes, mirrored shapes and shadows. After build_shapes().
void build_spans(Frame& frame);

/// Which shapes may put others into shadow. After build_shapes().
void build_casters(Frame& frame);

} // namespace troupe::env::caster
