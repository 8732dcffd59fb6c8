#pragma once

#include <array>
#include <string>

#include "env/physics.hpp"

namespace troupe::env {

/// Where a camera is, and its rays: of the pixel (u, v), each -1 to 1 from left to right and from
/// the bottom to the top, along forward + u * right + v * up. Its parameter is the distance from
/// the camera's plane.
struct Viewpoint {
  std::array<double, 3> eye{};
  std::array<double, 3> right{}; // its length: half the picture's width at a distance of 1
  std::array<double, 3> up{};
  std::array<double, 3> forward{};

  std::array<double, 3> at(double u, double v, double distance) const;
};

/// A camera that a person moves: one of the model's, or one that turns around a point. The point
/// may follow the first body with degrees of freedom. Perspective.
class OrbitCamera {
public:
  /// Begins with the model's camera 0, or free if the model has none.
  explicit OrbitCamera(const Physics& physics);

  /// The next of: the model's cameras, one that follows, one that stands.
  void choose_next(const Physics& physics);
  std::string name(const Physics& physics) const; // "side", "follows", "stands"

  /// Distances are parts of the picture's height. A camera of the model becomes one that stands,
  /// first.
  void turn(const Physics& physics, double right, double up);
  void shift(const Physics& physics, double right, double up);
  void zoom(const Physics& physics, double in); // 0.1: a tenth nearer

  /// Takes part in the followed body's motion; once before each picture.
  void follow(const Physics& physics);

  Viewpoint viewpoint(const Physics& physics, double width_by_height) const;
  const mjvCamera& camera() const { return camera_; } // for RayCaster::look_through()

private:
  void stand(const Physics& physics);
  bool is_fixed() const { return camera_.type == mjCAMERA_FIXED; }

  mjvCamera camera_{};
  int followed_ = 0; // body; 0: none
  bool follows_ = false;
  std::array<double, 3> before_{}; // where the followed body was
};

} // namespace troupe::env
