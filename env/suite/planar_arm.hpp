#pragma once

#include <array>

#include "env/suite/task.hpp"

namespace troupe::env {

/// The arm with a hand that manipulator and stacker share. It moves in the x-z plane.
class PlanarArm {
public:
  explicit PlanarArm(const Physics& physics);

  /// Draws limited joints uniformly from their range and the others from [-pi, pi). The finger gets
  /// the thumb's position.
  void randomize(Physics& physics, Random& random) const;

  /// The sine and cosine of each joint, the joints' velocities, touch as log(1 + newtons), and the
  /// pose of the hand.
  std::vector<ArraySpec> observations() const;
  void observe(const Physics& physics, ObservationWriter& writer) const;

private:
  struct Joint {
    int position; // index into qpos
    int velocity; // index into qvel
    double low;   // in radians
    double high;
  };
  static constexpr std::size_t kJoints = 8;
  static constexpr std::size_t kTouchSensors = 5;
  std::array<Joint, kJoints> joints_{};
  std::array<int, kTouchSensors> touch_{};
  int hand_;
  int finger_; // index into qpos
  int thumb_;
};

/// Writes x and z of a body, in metres.
void put_place(const Physics& physics, int body, ObservationWriter& writer);
/// Writes x and z of a body, and w and y of its quaternion.
void put_pose(const Physics& physics, int body, ObservationWriter& writer);

/// The distance between two sites, in metres.
double site_distance(const Physics& physics, int a, int b);

/// The index of a slide or hinge joint in qpos and qvel.
int position_of(const Physics& physics, const std::string& joint);
int velocity_of(const Physics& physics, const std::string& joint);

} // namespace troupe::env
