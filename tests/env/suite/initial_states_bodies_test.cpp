// Initial states of the domains with generated models and of those with free bodies, compared with
// the exact distributions of dm_control 1.0.50. Seeds are fixed, so the results are reproducible.
#include <doctest/doctest.h>

#include <cmath>

#include "env/suite/task.hpp"
#include "tests/env/suite/first_states.hpp"

using namespace troupe::env;
using namespace troupe::env::testing;

TEST_CASE("The joint randomizer draws every kind of joint as dm_control does") {
  Physics physics(compile_model("joints", R"(<mujoco><worldbody>
      <body pos="1 2 3"><freejoint/><geom size="1"/></body>
      <body pos="9 0 0"><joint type="ball"/><geom size="1"/></body>
      <body pos="19 0 0"><joint type="ball" limited="true" range="0 70"/><geom size="1"/></body>
      <body pos="29 0 0"><joint type="slide"/><geom size="1"/></body>
      <body pos="39 0 0"><joint type="slide" limited="true" range="-1 3"/><geom size="1"/></body>
      <body pos="49 0 0"><joint type="hinge"/><geom size="1"/></body>
      <body pos="59 0 0"><joint type="hinge" limited="true" range="-20 30"/><geom size="1"/></body>
      </worldbody></mujoco>)"));
  constexpr std::size_t kDraws = 20000;
  const auto nq = static_cast<std::size_t>(physics.model().nq);
  REQUIRE(nq == 7 + 4 + 4 + 4);
  Draws draws(nq + 7, kDraws);
  Random random(3);
  for (std::size_t i = 0; i < kDraws; ++i) {
    randomize_joints(physics, random);
    const double* q = physics.data().qpos;
    for (std::size_t k = 0; k < nq; ++k)
      draws.set(i, k, q[k]);
    for (std::size_t k = 0; k < 3; ++k)
      draws.set(i, nq + k, q[4 + k] / q[3]);
    const double sine = std::hypot(q[12], q[13], q[14]);
    draws.set(i, nq + 3, 2 * std::atan2(sine, q[11]));
    for (std::size_t k = 0; k < 3; ++k)
      draws.set(i, nq + 4 + k, q[12 + k] / sine);
    REQUIRE(mju_norm(q + 3, 4) == doctest::Approx(1).epsilon(1e-12));
    REQUIRE(mju_norm(q + 7, 4) == doctest::Approx(1).epsilon(1e-12));
    REQUIRE(mju_norm(q + 11, 4) == doctest::Approx(1).epsilon(1e-12));
  }
  for (std::size_t k = 0; k < 3; ++k) {
    check_constant("free place", draws[k], static_cast<double>(k + 1));
    check_cdf("free turn: a ratio of two uniform numbers", draws[nq + k], [](double x) {
      return x <= 0 ? 0 : x < 1 ? x / 2 : 1 - 1 / (2 * x);
    });
  }
  for (std::size_t k = 7; k < 11; ++k)
    check_cdf("ball", draws[k], sphere_coordinate_cdf(4));
  check_uniform("limited ball, angle", draws[nq + 3], 0, 70 * kPi / 180);
  for (std::size_t k = 0; k < 3; ++k)
    check_uniform("limited ball, axis", draws[nq + 4 + k], -1, 1);
  check_constant("slide", draws[15], 0);
  check_uniform("limited slide", draws[16], -1, 3);
  check_uniform("hinge", draws[17], -kPi, kPi);
  check_uniform("limited hinge", draws[18], -20 * kPi / 180, 30 * kPi / 180);
  check_all_uncorrelated("ball and others", draws, 7, 11);
  check_all_uncorrelated("others", draws, 16, 19);
}

TEST_CASE("An LQR has random stiffnesses and starts at rest on a sphere") {
  for (const auto& [task, bodies] : {std::pair("lqr_lqr_2_1", 2), std::pair("lqr_lqr_6_2", 6)}) {
    const auto n = static_cast<std::size_t>(bodies);
    const Draws draws = draw(task, 20000, [n](const Physics& physics) {
      std::vector<double> all = state(physics);
      const double* stiffness = physics.model().jnt_stiffness;
      all.insert(all.end(), stiffness, stiffness + n);
      all.push_back(mju_norm(physics.data().qpos, static_cast<int>(n)));
      return all;
    });
    const Cdf coordinate = sphere_coordinate_cdf(bodies);
    for (std::size_t i = 0; i < n; ++i) {
      check_cdf(task, draws[i], [&](double x) { return coordinate(x / std::numbers::sqrt2); });
      check_constant(task, draws[n + i], 0);
      check_uniform(task, draws[2 * n + i], 15, 25);
    }
    check_all_uncorrelated(task, draws, 0, n);
    check_all_uncorrelated(task, draws, 2 * n, 3 * n);
    for (const double norm : draws[3 * n])
      REQUIRE(norm == doctest::Approx(std::numbers::sqrt2).epsilon(1e-12));
  }
}

TEST_CASE(
    "A swimmer starts with random joints and, with probability 0.2, a target in the near box") {
  for (const char* task : {"swimmer_swimmer3", "swimmer_swimmer6", "swimmer_swimmer15"}) {
    check_joints(task, 4000);
    const Draws draws = draw(task, 20000, [](const Physics& physics) {
      const double* target = physics.model().geom_pos + 3 * physics.id(mjOBJ_GEOM, "target");
      const double* light = physics.model().light_pos + 3 * physics.id(mjOBJ_LIGHT, "target_light");
      return std::vector<double>{target[0], target[1], light[0] - target[0], light[1] - target[1]};
    });
    const auto box = [](double x, double half) {
      return std::clamp((x + half) / (2 * half), 0.0, 1.0);
    };
    auto close = std::make_unique<bool[]>(20000);
    for (std::size_t i = 0; i < 20000; ++i)
      close[i] = std::abs(draws[0][i]) < .3 && std::abs(draws[1][i]) < .3;
    for (const std::size_t axis : {0U, 1U}) {
      check_cdf(task, draws[axis], [&](double x) { return .2 * box(x, .3) + .8 * box(x, 2); });
      check_constant("light", draws[2 + axis], 0);
    }
    check_probability("close", {close.get(), 20000}, .2 + .8 * .15 * .15);
    check_uncorrelated("axes", draws[0], draws[1]);
  }
}

namespace {

/// Heading and tilt, root velocities, activations.
std::vector<double> dog_state(const Physics& physics) {
  const mjData& data = physics.data();
  const double turn = 2 * std::atan2(data.qpos[6], data.qpos[3]);
  std::vector<double> all{turn < 0 ? turn + 2 * kPi : turn, std::hypot(data.qpos[4], data.qpos[5])};
  all.insert(all.end(), data.qvel, data.qvel + 6);
  all.insert(all.end(), data.act, data.act + physics.model().na);
  return all;
}

/// How a ball that flies towards the middle was thrown: angle, distance, height at the start, peak
/// height, speed towards the middle, and sideways speed relative to it.
std::vector<double> ball_state(const Physics& physics) {
  const mjModel& model = physics.model();
  const int joint = physics.id(mjOBJ_JOINT, "ball_root");
  const double* place = physics.data().qpos + model.jnt_qposadr[joint];
  const double* velocity = physics.data().qvel + model.jnt_dofadr[joint];
  const double distance = std::hypot(place[0], place[1]);
  const double x = place[0] / distance;
  const double y = place[1] / distance;
  const double towards = -velocity[0] * x - velocity[1] * y;
  const double aside = velocity[0] * y - velocity[1] * x;
  return {std::atan2(x, y),
          distance,
          place[2],
          velocity[2] * velocity[2] / (-2 * model.opt.gravity[2]),
          towards,
          aside / towards,
          std::hypot(velocity[3], velocity[4], velocity[5])};
}

} // namespace

TEST_CASE("Dogs start in the default pose with a random heading, velocity and activations") {
  for (const auto& [task, resets] :
       {std::pair("dog_stand", 600U), std::pair("dog_walk", 2000U), std::pair("dog_trot", 600U),
        std::pair("dog_run", 600U), std::pair("dog_fetch", 600U)}) {
    const Draws draws = draw(task, resets, dog_state);
    check_uniform(task, draws[0], 0, 2 * kPi);
    check_constant(task, draws[1], 0);
    for (const std::size_t moving : {2U, 3U, 7U})
      check_normal(task, draws[moving], 0, 2);
    for (const std::size_t still : {4U, 5U, 6U})
      check_constant(task, draws[still], 0);
    const auto environment = make_task(task);
    const double* range = environment->physics()->model().actuator_ctrlrange;
    REQUIRE(draws.columns() == 8 + 38);
    for (std::size_t i = 0; i < 38; ++i)
      check_uniform(task, draws[8 + i], range[2 * i], range[2 * i + 1]);
    check_uncorrelated(task, draws[2], draws[3]);
    check_uncorrelated(task, draws[2], draws[7]);
    check_uncorrelated(task, draws[0], draws[2]);
  }
}

TEST_CASE("The dog's ball is thrown from the edge towards the middle") {
  const Draws draws = draw("dog_fetch", 2000, ball_state);
  check_uniform("angle", draws[0], -kPi, kPi);
  for (const double distance : draws[1])
    REQUIRE(distance == doctest::Approx(7.5)); // three quarters of the floor's half width
  check_constant("place", draws[2], .05);
  check_uniform("rise", draws[3], 0, 3);
  check_cdf("speed", draws[4], [](double x) { // uniform up to 5, with 5 % noise
    return normal_mean([x](double n) { return std::clamp(x / (5 * (1 + .05 * n)), 0.0, 1.0); });
  });
  check_cdf("aside", draws[5], [](double x) { return normal_cdf(x / .05 / std::sqrt(1 + x * x)); });
  check_constant("spin", draws[6], 0);
  check_uncorrelated("angle and speed", draws[0], draws[4]);
  check_uncorrelated("rise and speed", draws[3], draws[4]);
}
