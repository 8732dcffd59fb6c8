#pragma once

#include "env/caster/caster_model.hpp"
#include "env/caster/frame.hpp"
#include "env/caster/shape_builder.hpp"

namespace troupe::env::caster {

/// Fills `frame` from MuJoCo's scene for a picture of frame.width x frame.height pixels: the
/// camera, the lights, and the shapes, with the camera and the lights in each shape's own frame.
/// Leaves out shapes that are not finite.
void build_shapes(const mjModel& model, const mjvScene& scene, const CasterModel& shared,
                  const MovingParts& parts, Frame& frame);

/// Finds the blocks that may show each shape, mirrored shape and shadow. Call it after
/// build_shapes().
void build_spans(Frame& frame);

/// Finds the shapes that may cast shadows on others. Call it after build_shapes().
void build_casters(Frame& frame);

} // namespace troupe::env::caster
