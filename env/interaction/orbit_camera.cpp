#include "env/interaction/orbit_camera.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::env {
namespace {

using Vector = std::array<double, 3>;

constexpr double kDegree = std::numbers::pi / 180;
constexpr double kTurn = 180; // degrees per height of the picture
constexpr double kMostElevation = 89.5;
constexpr double kNearest = 0.01; // times the model's extent
constexpr double kFarthest = 100;

Vector scaled(const Vector& x, double by) {
  return {x[0] * by, x[1] * by, x[2] * by};
}

Vector plus(const Vector& x, const Vector& y) {
  return {x[0] + y[0], x[1] + y[1], x[2] + y[2]};
}

Vector point(const mjtNum* x) {
  return {x[0], x[1], x[2]};
}

/// The first body with degrees of freedom; 0 if there is none.
int moving_body(const mjModel& model) {
  for (int body = 1; body < model.nbody; ++body)
    if (model.body_dofnum[body] > 0 && model.body_mocapid[body] < 0)
      return body;
  return 0;
}

} // namespace

Vector Viewpoint::at(double u, double v, double distance) const {
  return plus(eye, scaled(plus(forward, plus(scaled(right, u), scaled(up, v))), distance));
}

OrbitCamera::OrbitCamera(const Physics& physics) : followed_(moving_body(physics.model())) {
  mjv_defaultFreeCamera(&physics.model(), &camera_);
  if (physics.model().ncam > 0) {
    camera_.type = mjCAMERA_FIXED;
    camera_.fixedcamid = 0;
  }
}

void OrbitCamera::choose_next(const Physics& physics) {
  if (is_fixed() && camera_.fixedcamid + 1 < physics.model().ncam) {
    ++camera_.fixedcamid;
  } else if (is_fixed() || (!follows_ && physics.model().ncam == 0)) {
    stand(physics);
    follows_ = followed_ > 0;
    if (follows_) {
      before_ = point(physics.data().subtree_com + 3 * followed_);
      std::copy(before_.begin(), before_.end(), camera_.lookat);
    }
  } else if (follows_ || physics.model().ncam == 0) {
    follows_ = false;
  } else {
    camera_.type = mjCAMERA_FIXED;
    camera_.fixedcamid = 0;
  }
}

std::string OrbitCamera::name(const Physics& physics) const {
  if (!is_fixed())
    return follows_ ? "follows" : "stands";
  const std::string given =
      physics.names(mjOBJ_CAMERA)[static_cast<std::size_t>(camera_.fixedcamid)];
  return given.empty() ? "camera " + std::to_string(camera_.fixedcamid) : given;
}

/// Switches from a model's camera to a free one with about the same view.
void OrbitCamera::stand(const Physics& physics) {
  if (!is_fixed())
    return;
  const Viewpoint now = viewpoint(physics, 1);
  camera_.type = mjCAMERA_FREE;
  camera_.fixedcamid = -1;
  follows_ = false;
  const Vector aim = followed_ > 0 ? point(physics.data().subtree_com + 3 * followed_)
                                   : point(physics.model().stat.center);
  double distance = 0;
  for (int i = 0; i < 3; ++i)
    distance += (aim[i] - now.eye[i]) * now.forward[i];
  const double extent = physics.model().stat.extent;
  camera_.distance = std::clamp(distance, kNearest * extent, kFarthest * extent);
  const Vector middle = plus(now.eye, scaled(now.forward, camera_.distance));
  std::copy(middle.begin(), middle.end(), camera_.lookat);
  camera_.azimuth = std::atan2(now.forward[1], now.forward[0]) / kDegree;
  camera_.elevation = std::clamp(std::asin(std::clamp(now.forward[2], -1.0, 1.0)) / kDegree,
                                 -kMostElevation, kMostElevation);
}

void OrbitCamera::turn(const Physics& physics, double right, double up) {
  stand(physics);
  camera_.azimuth = std::remainder(camera_.azimuth - right * kTurn, 360);
  camera_.elevation = std::clamp(camera_.elevation + up * kTurn, -kMostElevation, kMostElevation);
}

void OrbitCamera::shift(const Physics& physics, double right, double up) {
  stand(physics);
  const Viewpoint now = viewpoint(physics, 1);
  for (int i = 0; i < 3; ++i) // right and up span half the picture's height at distance 1
    camera_.lookat[i] -= 2 * camera_.distance * (right * now.right[i] + up * now.up[i]);
}

void OrbitCamera::zoom(const Physics& physics, double in) {
  stand(physics);
  const double extent = physics.model().stat.extent;
  camera_.distance =
      std::clamp(camera_.distance * std::exp(-in), kNearest * extent, kFarthest * extent);
}

void OrbitCamera::follow(const Physics& physics) {
  if (!follows_ || is_fixed())
    return;
  const Vector now = point(physics.data().subtree_com + 3 * followed_);
  for (int i = 0; i < 3; ++i)
    camera_.lookat[i] += now[i] - before_[i];
  before_ = now;
}

Viewpoint OrbitCamera::viewpoint(const Physics& physics, double width_by_height) const {
  const mjModel& model = physics.model();
  const mjData& data = physics.data();
  Viewpoint made;
  double field = model.vis.global.fovy;
  if (is_fixed()) {
    const int camera = camera_.fixedcamid;
    const mjtNum* axes = data.cam_xmat + 9 * camera; // columns: right, up, backward
    field = model.cam_fovy[camera];
    made.eye = point(data.cam_xpos + 3 * camera);
    made.right = {axes[0], axes[3], axes[6]};
    made.up = {axes[1], axes[4], axes[7]};
    made.forward = {-axes[2], -axes[5], -axes[8]};
  } else {
    const double azimuth = camera_.azimuth * kDegree;
    const double elevation = camera_.elevation * kDegree;
    made.forward = {std::cos(elevation) * std::cos(azimuth),
                    std::cos(elevation) * std::sin(azimuth), std::sin(elevation)};
    made.up = {-std::sin(elevation) * std::cos(azimuth), -std::sin(elevation) * std::sin(azimuth),
               std::cos(elevation)};
    made.right = {std::sin(azimuth), -std::cos(azimuth), 0};
    made.eye = plus(point(camera_.lookat), scaled(made.forward, -camera_.distance));
  }
  const double half = std::tan(field * kDegree / 2);
  made.right = scaled(made.right, half * width_by_height);
  made.up = scaled(made.up, half);
  return made;
}

} // namespace troupe::env
