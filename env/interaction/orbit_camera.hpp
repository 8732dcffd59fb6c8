#pragma once

#include <array>
#include <string>

#include "env/physics.hpp"

namespace troupe::env {

/// A camera's position and rays, as RayCaster draws them. The ray of pixel (u, v), where u and v
/// run from -1 to 1, left to right and bottom to top, has the direction forward + middle + u *
/// right + v * up. An orthographic ray has the direction forward, and the rest is added to the eye.
/// A ray's parameter is the distance from the camera's plane.
struct Viewpoint {
  std::array<double, 3> eye{};
  std::array<double, 3> right{}; // length: half the picture's width at distance 1
  std::array<double, 3> up{};
  std::array<double, 3> forward{};
  std::array<double, 3> middle{}; // not 0 if the picture's middle is not on the camera's axis
  bool orthographic = false;

  std::array<double, 3> at(double u, double v, double distance) const;
};

/// A camera that a person moves: one of the model's cameras, or one that orbits a point. The point
/// may follow the first body with degrees of freedom.
class OrbitCamera {
public:
  /// Starts with the model's camera 0, or with a free camera if the model has none.
  explicit OrbitCamera(const Physics& physics);

  /// Switches to the next of: the model's cameras, a following camera, a stationary camera.
  void choose_next(const Physics& physics);
  std::string name(const Physics& physics) const; // "side", "follows", "stands"

  /// Distances are fractions of the picture's height. A camera of the model first becomes a
  /// stationary one.
  void turn(const Physics& physics, double right, double up);
  void shift(const Physics& physics, double right, double up);
  void zoom(const Physics& physics, double in); // 0.1: a tenth nearer

  /// Moves the camera with the followed body; call it once before each picture.
  void follow(const Physics& physics);

  Viewpoint viewpoint(const Physics& physics, double width_by_height) const;
  const mjvCamera& camera() const { return camera_; } // for RayCaster::look_through()

private:
  void stand(const Physics& physics);
  bool is_fixed() const { return camera_.type == mjCAMERA_FIXED; }

  mjvCamera camera_{};
  int followed_ = 0; // the followed body; 0: none
  bool follows_ = false;
  std::array<double, 3> before_{}; // position of the followed body at the last follow()
};

} // namespace troupe::env
