#pragma once

#include <array>
#include <string>

#include "env/caster/ray_caster.hpp"
#include "env/interaction/orbit_camera.hpp"

namespace troupe::env {

/// Holds a point of a body and pulls it by a spring, towards another point of the plane through it
/// that is parallel to the picture.
class Hand {
public:
  /// Takes the body that a picture of `caster` shows at (u, v) of the viewpoint; false if there is
  /// none that moves.
  bool grab(Physics& physics, RayCaster& caster, const Viewpoint& view, double u, double v);
  /// The end of the spring is where the viewpoint shows (u, v).
  void pull(const Viewpoint& view, double u, double v);
  void release() { body_ = 0; }

  bool holds() const { return body_ > 0; }
  std::string body_name(const Physics& physics) const; // "": none

  /// The spring's force, before each step.
  void apply(Physics& physics);

private:
  int body_ = 0;
  int pulled_ = 0;                 // whose force is set; 0: none
  std::array<double, 3> offset_{}; // of the point, in the body's frame
  std::array<double, 3> end_{};
  double depth_ = 0; // of the point when it was taken
};

} // namespace troupe::env
