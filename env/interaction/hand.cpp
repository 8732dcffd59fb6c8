#include "env/interaction/hand.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "env/caster/caster_model.hpp"

namespace troupe::env {
namespace {

// The spring's damping in 1/s, times the mass at the held point; its stiffness is the square, as in
// MuJoCo's viewer. A force that is constant for longer than kLongestForce would overshoot, because
// the mass in one direction may be a third of the mean.
constexpr double kDamping = 10;
constexpr double kLongestForce = 0.5 / kDamping; // seconds

std::size_t pixel(double at, int pixels) { // at: from -1 to 1
  return static_cast<std::size_t>(
      std::clamp(static_cast<int>(std::floor((at + 1) / 2 * pixels)), 0, pixels - 1));
}

/// The vertex of the skin that is nearest to `place`.
int nearest_vertex(const Physics& physics, int number, const std::array<double, 3>& place) {
  caster::Skin skin(caster_model(physics.compiled())->skins()[static_cast<std::size_t>(number)]);
  skin.pose(physics.data());
  const std::vector<float>& vertices = skin.vertices();
  std::size_t nearest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < vertices.size() / 4; ++i) {
    double squared = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const double off = static_cast<double>(vertices[4 * i + k])
                         + static_cast<double>(skin.origin()[k]) - place[k];
      squared += off * off;
    }
    if (squared < least) {
      least = squared;
      nearest = i;
    }
  }
  return static_cast<int>(nearest);
}

/// The body with the greatest weight at the vertex of the skin that is nearest to `place`.
int body_of_skin(const Physics& physics, int number, const std::array<double, 3>& place) {
  const mjModel& model = physics.model();
  const int vertex = nearest_vertex(physics, number, place);
  int body = 0;
  float most = 0;
  for (int j = 0; j < model.skin_bonenum[number]; ++j) {
    const int bone = model.skin_boneadr[number] + j;
    for (int k = 0; k < model.skin_bonevertnum[bone]; ++k) {
      const int at = model.skin_bonevertadr[bone] + k;
      if (model.skin_bonevertid[at] != vertex || !(model.skin_bonevertweight[at] > most))
        continue;
      most = model.skin_bonevertweight[at];
      body = model.skin_bonebodyid[bone];
    }
  }
  return body;
}

/// The body that a segmented pixel shows at `place`; 0: the world, or nothing.
int body_of(const Physics& physics, std::int32_t object, std::int32_t type,
            const std::array<double, 3>& place) {
  if (object < 0)
    return 0;
  if (type == mjOBJ_GEOM)
    return physics.model().geom_bodyid[object];
  if (type == mjOBJ_SITE)
    return physics.model().site_bodyid[object];
  if (type == mjOBJ_SKIN)
    return body_of_skin(physics, object, place);
  return 0;
}

/// The mass that a force at a point of the body moves, as in mjv_initPerturb(): the harmonic mean
/// of the three directions. 0 if the point cannot move.
double mass_at(Physics& physics, int body, const mjtNum* point) {
  const auto count = 3 * static_cast<std::size_t>(physics.model().nv);
  std::vector<mjtNum> jacobian(count);
  std::vector<mjtNum> solved(count);
  mj_jac(&physics.model(), &physics.data(), jacobian.data(), nullptr, point, body);
  mj_solveM(&physics.model(), &physics.data(), solved.data(), jacobian.data(), 3);
  const mjtNum inverse = mju_dot(jacobian.data(), solved.data(), static_cast<int>(count));
  return inverse > mjMINVAL ? 3 / inverse : 0;
}

} // namespace

bool Hand::grab(Physics& physics, RayCaster& caster, const Viewpoint& view, double u, double v) {
  release();
  const CastOptions& size = caster.options();
  const std::size_t at =
      pixel(-v, size.height) * static_cast<std::size_t>(size.width) + pixel(u, size.width);
  const auto pixels = static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width);
  std::vector<std::int32_t> objects(2 * pixels);
  std::vector<float> distances(pixels);
  caster.draw_segmentation(physics.model(), physics.data(), objects, distances);
  const double depth = distances[at];
  const std::array<double, 3> seen = view.at(u, v, depth);
  const int body = body_of(physics, objects[2 * at], objects[2 * at + 1], seen);
  if (body == 0 || physics.model().body_weldid[body] == 0)
    return false;
  depth_ = depth;
  body_ = body;
  end_ = seen;
  const mjtNum* place = physics.data().xpos + 3 * body;
  const mjtNum away[3] = {end_[0] - place[0], end_[1] - place[1], end_[2] - place[2]};
  mju_mulMatTVec3(offset_.data(), physics.data().xmat + 9 * body, away);
  return true;
}

void Hand::pull(const Viewpoint& view, double u, double v) {
  end_ = view.at(u, v, depth_);
}

std::string Hand::body_name(const Physics& physics) const {
  if (!holds())
    return "";
  const std::string given = physics.names(mjOBJ_BODY)[static_cast<std::size_t>(body_)];
  return given.empty() ? "body " + std::to_string(body_) : given;
}

void Hand::apply(Physics& physics, double seconds) {
  const mjModel& model = physics.model();
  mjData& data = physics.data();
  if (pulled_ > 0)
    std::fill_n(data.xfrc_applied + 6 * pulled_, 6, 0.0);
  pulled_ = body_;
  if (!holds())
    return;
  mjtNum away[3]; // from the body's origin to the point
  mju_mulMatVec3(away, data.xmat + 9 * body_, offset_.data());
  mjtNum now[3];
  mju_add3(now, data.xpos + 3 * body_, away);
  mjtNum velocity[6]; // rotation, translation
  mj_objectVelocity(&model, &data, mjOBJ_XBODY, body_, velocity, 0);
  mjtNum turning[3];
  mju_cross(turning, velocity, away);
  const double mass = mass_at(physics, body_, now);
  const double damping = kDamping * std::min(1.0, kLongestForce / seconds);
  const double stiffness = damping * damping;
  mjtNum* force = data.xfrc_applied + 6 * body_; // at the body's centre of mass: force, torque
  for (int i = 0; i < 3; ++i)
    force[i] = mass
               * (stiffness * (end_[static_cast<std::size_t>(i)] - now[i])
                  - damping * (velocity[3 + i] + turning[i]));
  mjtNum arm[3];
  mju_sub3(arm, now, data.xipos + 3 * body_);
  mju_cross(force + 3, arm, force);
}

} // namespace troupe::env
