#include "env/suite/placement.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::env {

namespace {

constexpr int kMostPlacementTries =
    100000; // in the worst case, four boxes and the arm, about one draw in 15 is free
constexpr int kMostLifts = 10000;
constexpr double kLift = .01; // in metres

} // namespace

void draw_until_free(Physics& physics, const std::function<void()>& draw) {
  for (int i = 0; i < kMostPlacementTries; ++i) {
    draw();
    if (physics.contacts() == 0)
      return;
  }
  throw std::runtime_error("model '" + physics.name() + "': no initial state was free of contacts"
                           + " in " + std::to_string(kMostPlacementTries) + " tries");
}

void place_above_ground(Physics& physics, int address, double x, double y,
                        const Quaternion& orientation) {
  mj_resetData(&physics.model(), &physics.data());
  double* place = physics.data().qpos + address;
  place[0] = x;
  place[1] = y;
  place[2] = 0;
  std::copy(orientation.begin(), orientation.end(), place + 3);
  for (int i = 0; i < kMostLifts; ++i) {
    if (physics.contacts() == 0)
      return;
    place[2] += kLift;
  }
  throw std::runtime_error("model '" + physics.name() + "': its body touches something up to "
                           + std::to_string(kMostLifts * kLift) + " m above the ground");
}

} // namespace troupe::env
