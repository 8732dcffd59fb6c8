#pragma once

#include <array>
#include <string>

#include "env/caster/ray_caster.hpp"
#include "env/interaction/orbit_camera.hpp"

namespace troupe::env {

/// Holds a point of a body and pulls it by a spring towards another point, in the plane through the
/// held point that is parallel to the picture.
class Hand {
public:
  /// Grabs the body that `caster` shows at (u, v) of the viewpoint; of a skin, the body that moves
  /// it most there. Returns false if there is no movable body.
  bool grab(Physics& physics, RayCaster& caster, const Viewpoint& view, double u, double v);
  /// Moves the end of the spring to (u, v) of the viewpoint.
  void pull(const Viewpoint& view, double u, double v);
  void release() { body_ = 0; }

  bool holds() const { return body_ > 0; }
  std::string body_name(const Physics& physics) const; // "" if nothing is held

  /// Applies the spring's force for the next `seconds`, at the end of which it must be called
  /// again. The spring is as strong as the mass at the held point and `seconds` allow without
  /// overshoot.
  void apply(Physics& physics, double seconds);

private:
  int body_ = 0;
  int pulled_ = 0;                 // body to which a force is applied; 0: none
  std::array<double, 3> offset_{}; // of the held point, in the body's frame
  std::array<double, 3> end_{};
  double depth_ = 0; // of the held point when it was grabbed
};

} // namespace troupe::env
