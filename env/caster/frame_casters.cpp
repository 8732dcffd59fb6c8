#include <cmath>

#include "env/caster/float3.hpp"
#include "env/caster/frame_builder.hpp"

namespace troupe::env::caster {

namespace {

struct Ball {
  Float3 centre{};
  float radius = 0;
};

Ball ball_around(const Shape& shape) {
  return {shape.centre, shape.radius + length(shape.half_segment)};
}

/// Whether ball `caster` may cast a shadow on a point of ball `receiver`.
bool may_shadow(const Light& light, const Ball& caster, const Ball& receiver) {
  const float both = caster.radius + receiver.radius;
  if (light.directional) {
    const Float3 apart = caster.centre - receiver.centre;
    const float along = -dot(apart, light.direction);
    if (along < -both)
      return false;
    const Float3 across = apart + light.direction * along;
    return dot(across, across) <= both * both;
  }
  const Float3 to_caster = caster.centre - light.position;
  const Float3 to_receiver = receiver.centre - light.position;
  const float caster_distance = length(to_caster);
  const float receiver_distance = length(to_receiver);
  if (caster_distance <= caster.radius || receiver_distance <= receiver.radius)
    return true;
  if (caster_distance - caster.radius > receiver_distance + receiver.radius)
    return false;
  const float cos_between = dot(to_caster, to_receiver) / (caster_distance * receiver_distance);
  const float sin_caster = caster.radius / caster_distance;
  const float sin_receiver = receiver.radius / receiver_distance;
  const float cos_caster = std::sqrt(1 - sin_caster * sin_caster);
  const float cos_receiver = std::sqrt(1 - sin_receiver * sin_receiver);
  // The angles add up to less than pi, so comparing cosines is enough.
  return cos_between >= cos_caster * cos_receiver - sin_caster * sin_receiver;
}

/// Whether the plane may be between the light and a part of the receiver.
bool plane_between(const Light& light, const Shape& plane, const Ball& receiver) {
  const Float3 normal = column(plane.rotation, 2);
  const float side = dot(normal, receiver.centre - plane.position);
  const float light_side = light.directional ? -dot(normal, light.direction)
                                             : dot(normal, light.position - plane.position);
  return light_side >= 0 ? side < receiver.radius : side > -receiver.radius;
}

} // namespace

void build_casters(Frame& frame) {
  frame.caster_first.clear();
  frame.caster_list.clear();
  for (std::size_t s = 0; s < frame.shapes.size(); ++s) {
    const Shape& receiver = frame.shapes[s];
    const Ball around = ball_around(receiver);
    const bool wanted = !receiver.transparent && receiver.kind != ShapeKind::plane;
    for (const Light& light : frame.lights) {
      frame.caster_first.push_back(static_cast<std::int32_t>(frame.caster_list.size()));
      for (std::size_t c = 0; c < frame.shapes.size() && wanted && light.shadowed; ++c) {
        const Shape& caster = frame.shapes[c];
        // Convex shapes never shadow themselves.
        if (!caster.casts_shadow || (c == s && caster.kind <= ShapeKind::box))
          continue;
        if (caster.kind == ShapeKind::plane ? plane_between(light, caster, around)
                                            : may_shadow(light, ball_around(caster), around))
          frame.caster_list.push_back(static_cast<std::int32_t>(c));
      }
    }
  }
  frame.caster_first.push_back(static_cast<std::int32_t>(frame.caster_list.size()));
}

} // namespace troupe::env::caster
