#pragma once

#include <array>

#include "env/suite/task.hpp"

namespace troupe::env {

/// The arm with a hand that manipulator and stacker share; it moves in the plane of x and z.
class PlanarArm {
public:
  explicit PlanarArm(const Physics& physics);

  /// Limited joints uniformly in their range, the others in [-pi, pi); the finger as the thumb.
  void randomize(Physics& physics, Random& random) const;

  /// Sine and cosine of each joint, joint velocities, touch as log(1 + newtons), and the hand.
  std::vector<ArraySpec> observations() const;
  void observe(const Physics& physics, ObservationWriter& writer) const;

private:
  struct Joint {
    int position; // in qpos
    int velocity; // in qvel
    double low;   // radians
    double high;
  };
  static constexpr std::size_t kJoints = 8;
  static constexpr std::size_t kTouchSensors = 5;
  std::array<Joint, kJoints> joints_{};
  std::array<int, kTouchSensors> touch_{};
  int hand_;
  int finger_; // in qpos
  int thumb_;
};

/// x and z of a body, metres.
void put_place(const Physics& physics, int body, ObservationWriter& writer);
/// The same, and w and y of its quaternion.
void put_pose(const Physics& physics, int body, ObservationWriter& writer);

/// Metres between two sites.
double site_distance(const Physics& physics, int a, int b);

/// Numbers of a slide or hinge in qpos and qvel.
int position_of(const Physics& physics, const std::string& joint);
int velocity_of(const Physics& physics, const std::string& joint);

} // namespace troupe::env
