// Initial states compared with the exact distributions of dm_control 1.0.50, for each quantity that
// it draws. Seeds are fixed, so the results are reproducible.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/env/suite/first_states.hpp"

using namespace troupe::env;
using namespace troupe::env::testing;

TEST_CASE("The pendulum and the acrobot start at rest at any angle") {
  const Draws pendulum = draw("pendulum_swingup", 20000, state);
  check_uniform("pendulum", pendulum[0], -kPi, kPi);
  check_constant("pendulum", pendulum[1], 0);
  for (const char* task : {"acrobot_swingup", "acrobot_swingup_sparse"}) {
    const Draws draws = draw(task, 20000, state);
    for (const std::size_t arm : {0U, 1U}) {
      check_uniform(task, draws[arm], -kPi, kPi);
      check_constant(task, draws[2 + arm], 0);
    }
    check_all_uncorrelated(task, draws, 0, 2);
  }
}

TEST_CASE("Cartpole balance tasks start near the top, and other cartpole tasks near the bottom") {
  for (const char* task : {"cartpole_balance", "cartpole_balance_sparse"}) {
    const Draws draws = draw(task, 20000, state);
    check_uniform(task, draws[0], -.1, .1);
    check_uniform(task, draws[1], -.034, .034);
    for (const std::size_t velocity : {2U, 3U})
      check_normal(task, draws[velocity], 0, .01);
    check_all_uncorrelated(task, draws, 0, 4);
  }
  for (const auto& [task, poles] :
       {std::pair("cartpole_swingup", 1U), std::pair("cartpole_swingup_sparse", 1U),
        std::pair("cartpole_two_poles", 2U), std::pair("cartpole_three_poles", 3U)}) {
    const Draws draws = draw(task, 20000, state);
    check_normal(task, draws[0], 0, .01);
    check_normal(task, draws[1], kPi, .01);
    for (std::size_t pole = 2; pole <= poles; ++pole)
      check_normal(task, draws[pole], 0, .1);
    for (std::size_t i = 0; i <= poles; ++i)
      check_normal(task, draws[poles + 1 + i], 0, .01);
    check_all_uncorrelated(task, draws, 0, 2 * (poles + 1));
  }
}

TEST_CASE("The ball in the cup task starts uniformly over the positions without contacts") {
  const Draws draws = draw("ball_in_cup_catch", 4000, [](const Physics& physics) {
    return std::vector<double>{physics.data().qpos[2], physics.data().qpos[3]};
  });
  const auto environment = make_task("ball_in_cup_catch");
  Physics& physics = *environment->physics();
  physics.reset();
  Other other;
  Sample x;
  Sample z;
  while (x.size() < 8000) {
    physics.data().qpos[2] = other.uniform(-.2, .2);
    physics.data().qpos[3] = other.uniform(.2, .5);
    physics.forward_without_actuation();
    if (physics.data().ncon > 0)
      continue;
    x.push_back(physics.data().qpos[2]);
    z.push_back(physics.data().qpos[3]);
  }
  check_same("x", draws[0], x);
  check_same("z", draws[1], z);
}

TEST_CASE("The cheetah starts where 200 steps take it from random joints within their limits") {
  constexpr std::size_t kResets = 800;
  const Draws draws = draw("cheetah_run", kResets, state);
  const auto environment = make_task("cheetah_run");
  Physics& physics = *environment->physics();
  const mjModel& model = physics.model();
  Other other;
  Draws theirs(draws.columns(), kResets);
  for (std::size_t i = 0; i < kResets; ++i) {
    physics.reset();
    for (int joint = 0; joint < static_cast<int>(model.njnt); ++joint)
      if (model.jnt_limited[joint])
        physics.data().qpos[model.jnt_qposadr[joint]] =
            other.uniform(model.jnt_range[2 * joint], model.jnt_range[2 * joint + 1]);
    physics.step(200);
    const std::vector<double> settled = state(physics);
    for (std::size_t k = 0; k < settled.size(); ++k)
      theirs.set(i, k, settled[k]);
  }
  for (std::size_t k = 0; k < draws.columns(); ++k)
    check_same("state " + std::to_string(k), draws[k], theirs[k]);
}

TEST_CASE("Reachers, walkers, hoppers and point masses start with every joint random") {
  for (const char* task : {"reacher_easy", "reacher_hard", "point_mass_easy", "point_mass_hard"})
    check_joints(task, 20000);
  for (const char* task :
       {"walker_stand", "walker_walk", "walker_run", "hopper_stand", "hopper_hop"})
    check_joints(task, 4000);
}

TEST_CASE("The reacher's target is uniform in angle and radius") {
  for (const auto& [task, size] :
       {std::pair("reacher_easy", .05), std::pair("reacher_hard", .015)}) {
    const Draws draws = draw(task, 20000, [](const Physics& physics) {
      const int target = physics.id(mjOBJ_GEOM, "target");
      const double* place = physics.model().geom_pos + 3 * target;
      return std::vector<double>{std::atan2(place[0], place[1]), std::hypot(place[0], place[1]),
                                 physics.model().geom_size[3 * target], physics.data().qpos[0]};
    });
    check_uniform("angle", draws[0], -kPi, kPi);
    check_uniform("radius", draws[1], .05, .2);
    check_constant("size", draws[2], size);
    check_uncorrelated("angle and radius", draws[0], draws[1]);
    check_uncorrelated("angle and joint", draws[0], draws[3]);
  }
}

TEST_CASE("The hard point mass is pulled in two random directions that are never nearly parallel") {
  const auto directions = [](const Physics& physics) {
    const double* d = physics.model().wrap_prm;
    return std::vector<double>{std::hypot(d[0], d[1]), std::hypot(d[2], d[3]),
                               std::atan2(d[1], d[0]), std::atan2(d[3], d[2]),
                               std::acos(std::abs(d[0] * d[2] + d[1] * d[3]))};
  };
  const Draws hard = draw("point_mass_hard", 20000, directions);
  for (const std::size_t length : {0U, 1U})
    for (const double x : hard[length])
      REQUIRE(x == doctest::Approx(1).epsilon(1e-12));
  check_uniform("first", hard[2], -kPi, kPi);
  check_uniform("second", hard[3], -kPi, kPi);
  check_uniform("between them", hard[4], std::acos(.9), kPi / 2);
  const Draws easy = draw("point_mass_easy", 500, directions);
  check_constant("easy", easy[2], 0);
  check_constant("easy", easy[3], kPi / 2);
}

TEST_CASE("Fingers start in any position without contacts") {
  const auto environment = make_task("finger_spin");
  Physics& physics = *environment->physics();
  const mjModel& model = physics.model();
  physics.reset();
  Other other;
  Draws theirs(3, 6000);
  for (std::size_t i = 0; i < 6000;) {
    for (int joint = 0; joint < 3; ++joint)
      physics.data().qpos[joint] =
          model.jnt_limited[joint]
              ? other.uniform(model.jnt_range[2 * joint], model.jnt_range[2 * joint + 1])
              : other.uniform(-kPi, kPi);
    physics.forward_without_actuation();
    if (physics.data().ncon > 0)
      continue;
    for (std::size_t joint = 0; joint < 3; ++joint)
      theirs.set(i, joint, physics.data().qpos[joint]);
    ++i;
  }
  for (const char* task : {"finger_spin", "finger_turn_easy", "finger_turn_hard"}) {
    const Draws draws = draw(task, 3000, [](const Physics& seen) {
      std::vector<double> all = state(seen);
      all.push_back(seen.data().ncon);
      return all;
    });
    check_constant(std::string(task) + " collisions", draws[6], 0);
    for (std::size_t joint = 0; joint < 3; ++joint) {
      check_same(task, draws[joint], theirs[joint]);
      check_constant(task, draws[3 + joint], 0);
    }
  }
}

TEST_CASE("The finger's target is uniform on its ring, and the spin task hides it and loosens the "
          "hinge") {
  for (const auto& [task, size] :
       {std::pair("finger_turn_easy", .07), std::pair("finger_turn_hard", .03)}) {
    const Draws draws = draw(task, 6000, [](const Physics& physics) {
      const int target = physics.id(mjOBJ_SITE, "target");
      const double* place = physics.model().site_pos + 3 * target;
      const double* hinge = physics.data().xanchor + 3 * physics.id(mjOBJ_JOINT, "hinge");
      const double x = place[0] - hinge[0];
      const double z = place[2] - hinge[2];
      return std::vector<double>{std::atan2(x, z), std::hypot(x, z),
                                 physics.model().site_size[3 * target]};
    });
    check_uniform("angle", draws[0], -kPi, kPi);
    for (const double radius : draws[1])
      REQUIRE(radius == doctest::Approx(.13)); // radius and half length of its capsule
    check_constant("size", draws[2], size);
  }
  const Draws spin = draw("finger_spin", 500, [](const Physics& physics) {
    const mjModel& model = physics.model();
    return std::vector<double>{
        model.site_rgba[4 * physics.id(mjOBJ_SITE, "target") + 3],
        model.site_rgba[4 * physics.id(mjOBJ_SITE, "tip") + 3],
        model.dof_damping[model.jnt_dofadr[physics.id(mjOBJ_JOINT, "hinge")]]};
  });
  check_constant("target", spin[0], 0);
  check_constant("tip", spin[1], 0);
  check_constant("damping", spin[2], .03);
}

TEST_CASE(
    "Fish start slightly bent with a uniform rotation, and the swim task's target is in a box") {
  const Cdf quaternion = sphere_coordinate_cdf(4);
  for (const char* task : {"fish_upright", "fish_swim"}) {
    const Draws draws = draw(task, 20000, state);
    for (std::size_t i = 0; i < 2; ++i)
      check_constant("place", draws[i], 0);
    check_constant("place", draws[2], .1);
    for (std::size_t i = 3; i < 7; ++i)
      check_cdf(task, draws[i], quaternion);
    for (std::size_t i = 7; i < 14; ++i)
      check_uniform(task, draws[i], -.2, .2);
    for (std::size_t i = 14; i < draws.columns(); ++i)
      check_constant(task, draws[i], 0);
    check_all_uncorrelated(task, draws, 3, 14);
  }
  const auto target = [](const Physics& physics) {
    const int id = physics.id(mjOBJ_GEOM, "target");
    const double* place = physics.model().geom_pos + 3 * id;
    return std::vector<double>{place[0], place[1], place[2], physics.model().geom_rgba[4 * id + 3]};
  };
  const Draws swim = draw("fish_swim", 20000, target);
  check_uniform("x", swim[0], -.4, .4);
  check_uniform("y", swim[1], -.4, .4);
  check_uniform("z", swim[2], .1, .3);
  check_all_uncorrelated("target", swim, 0, 3);
  check_constant("hidden", draw("fish_upright", 500, target)[3], 0);
}
