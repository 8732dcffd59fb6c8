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
  const Vector across = plus(middle, plus(scaled(right, u), scaled(up, v)));
  return orthographic ? plus(plus(eye, across), scaled(forward, distance))
                      : plus(eye, scaled(plus(forward, across), distance));
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
  const double reach = now.orthographic ? 1 : camera_.distance;
  for (int i = 0; i < 3; ++i) // right and up span half the picture's height at distance 1
    camera_.lookat[i] -= 2 * reach * (right * now.right[i] + up * now.up[i]);
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
  mjvScene scene;
  mjv_defaultScene(&scene);
  mjvCamera camera = camera_;
  mjv_updateCamera(&physics.model(), &physics.data(), &camera, &scene);
  const mjvGLCamera& drawn = scene.camera[0];
  Viewpoint made;
  made.orthographic = drawn.orthographic != 0;
  mjv_cameraFrame(made.eye.data(), made.forward.data(), made.up.data(), made.right.data(),
                  &physics.data(), &camera);
  const double scale = made.orthographic ? 1 : 1 / static_cast<double>(drawn.frustum_near);
  const auto at_one = [&](float a) { return scale * static_cast<double>(a); };
  const double height = at_one(drawn.frustum_top - drawn.frustum_bottom) / 2;
  const double width = at_one(drawn.frustum_width); // 0 without intrinsics: pixels are square
  made.middle = plus(scaled(made.right, at_one(drawn.frustum_center)),
                     scaled(made.up, at_one(drawn.frustum_top + drawn.frustum_bottom) / 2));
  made.right = scaled(made.right, width > 0 ? width : height * width_by_height);
  made.up = scaled(made.up, height);
  return made;
}

} // namespace troupe::env
