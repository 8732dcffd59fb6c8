#pragma once

#include "env/caster/caster_model.hpp"
#include "env/caster/draw_list.hpp"
#include "env/caster/frame.hpp"
#include "env/caster/shape_builder.hpp"

namespace troupe::env::caster {

/// Builds one frame after another. Not thread-safe. Allocates only if a state shows more than any
/// earlier one.
struct FrameBuilder {
  FrameBuilder(const CasterModel& model, const CastOptions& options); // model must outlive this

  /// Fills `frame` for this state: the camera, the lights, and the shapes, with the camera and the
  /// lights in each shape's own frame. Leaves out shapes that are not finite.
  void update(const mjModel& model, const mjData& data);

  const CasterModel& shared;
  DrawList list;
  MovingParts parts;
  Frame frame;
};

/// Finds the blocks that may show each shape, mirrored shape and shadow. Used by FrameBuilder.
void build_spans(Frame& frame);

/// Finds the shapes that may cast shadows on others. Used by FrameBuilder.
void build_casters(Frame& frame);

} // namespace troupe::env::caster
