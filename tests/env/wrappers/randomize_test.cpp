#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "env/make/make.hpp"
#include "env/physics.hpp"
#include "env/wrappers/randomize.hpp"
#include "tests/env/fake_environment.hpp"

using namespace troupe::env;

namespace {

template <typename T>
std::vector<T> copy(const T* from, std::size_t count) {
  return {from, from + count};
}

std::vector<double> masses(Environment& environment) {
  const mjModel& m = environment.physics()->model();
  return copy(m.body_mass, static_cast<std::size_t>(m.nbody));
}

Played randomized(const char* task, std::vector<Randomization> changes) {
  return Played(std::make_unique<Randomize>(make_task(task), std::move(changes)));
}

} // namespace

TEST_CASE(
    "Masses depend on the seed and stay within their range, and the bare model is unchanged") {
  Played played = randomized("walker_walk", {random_masses(.3)});
  const auto bare = make_task("walker_walk");
  const std::vector<double> nominal = masses(*bare);
  std::set<std::vector<double>> different;
  for (const std::uint64_t seed : {1, 2, 3, 1}) {
    played.reset(seed);
    const mjModel& m = played.environment->physics()->model();
    const auto drawn = masses(*played.environment);
    different.insert(drawn);
    double total = 0;
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      CHECK(drawn[i] >= .7 * nominal[i]);
      CHECK(drawn[i] <= 1.3 * nominal[i]);
      total += drawn[i];
      if (nominal[i] > 0) // inertia scales with the mass
        CHECK(m.body_inertia[3 * i] / bare->physics()->model().body_inertia[3 * i]
              == doctest::Approx(drawn[i] / nominal[i]));
    }
    CHECK(m.body_subtreemass[0] == doctest::Approx(total));
  }
  CHECK(different.size() == 3); // the same seed gives the same model again
  CHECK(masses(*bare) == nominal);
}

TEST_CASE("A randomised episode is a function of its seed, whatever was played before") {
  const auto make = [] {
    return randomized("cheetah_run", {random_masses(.3), random_friction(.5)});
  };
  Played a = make();
  Played b = make();
  for (int i = 1; i < 4; ++i)
    b.reset(static_cast<std::uint64_t>(i));
  a.reset(9);
  b.reset(9);
  CHECK(a.observation == b.observation);
  for (int i = 0; i < 50; ++i)
    REQUIRE(a.step({1, -1, 1, -1, 1, -1}).observation == b.step({1, -1, 1, -1, 1, -1}).observation);
  Played other(make_task("cheetah_run")); // and differs from the unmodified model
  other.reset(9);
  for (int i = 0; i < 50; ++i)
    other.step({1, -1, 1, -1, 1, -1});
  CHECK(other.observation != a.observation);
}

TEST_CASE("Colours, lights, cameras and friction vary within their ranges") {
  Played played = randomized("cheetah_run", {random_colours(.2), random_lights(.5),
                                             random_cameras(.1, .2), random_friction(.4)});
  const auto bare = make_task("cheetah_run");
  const mjModel& nominal = bare->physics()->model();
  const mjModel& m = played.environment->physics()->model();
  for (const std::uint64_t seed : {1, 2}) {
    played.reset(seed);
    const auto within = [](const auto* now, const auto* before, std::size_t count, double most) {
      bool moved = false;
      for (std::size_t i = 0; i < count; ++i) {
        const double change =
            std::abs(static_cast<double>(now[i]) - static_cast<double>(before[i]));
        CHECK(change <= most + 1e-6);
        moved = moved || change > 0;
      }
      return moved;
    };
    const auto geoms = static_cast<std::size_t>(m.ngeom);
    const auto materials = static_cast<std::size_t>(m.nmat);
    const auto cameras = static_cast<std::size_t>(m.ncam);
    const auto lights = static_cast<std::size_t>(m.nlight);
    CHECK(within(m.mat_rgba, nominal.mat_rgba, 4 * materials, .2));
    within(m.geom_rgba, nominal.geom_rgba, 4 * geoms, .2);
    CHECK(within(m.cam_pos, nominal.cam_pos, 3 * cameras, .1));
    CHECK(within(m.cam_fovy, nominal.cam_fovy, cameras, .2 * 90));
    CHECK(within(m.light_pos, nominal.light_pos, 3 * lights, .5));
    CHECK(within(m.light_diffuse, nominal.light_diffuse, 3 * lights, .5));
    CHECK(within(m.geom_friction, nominal.geom_friction, 3 * geoms, .4));
    for (std::size_t i = 0; i < materials; ++i) // alpha is unchanged
      CHECK(m.mat_rgba[4 * i + 3] == nominal.mat_rgba[4 * i + 3]);
  }
}

TEST_CASE("A custom hook changes any array of the model, and an unknown array is refused") {
  const Randomization heavier{
      .name = "gravity compensation",
      .arrays = {"body_gravcomp"},
      .float_arrays = {},
      .draw =
          [](Physics& physics, Random& random) {
            for (double& part : physics.own_array("body_gravcomp"))
              part = random.uniform(.5, 1);
          },
  };
  Played played = randomized("walker_walk", {heavier});
  played.reset(1);
  CHECK(played.environment->physics()->model().body_gravcomp[1] >= .5);
  CHECK_THROWS_WITH_AS(randomized("walker_walk", {{"mine", {"body_mas"}, {}, {}}}),
                       doctest::Contains("'mine': model 'walker' has no array 'body_mas'"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Randomize(std::make_unique<Counting>(), {random_masses(.1)}),
                       doctest::Contains("no physics"), std::invalid_argument);
  for (const double bad : {-.1, 1.1, std::nan("")}) {
    CHECK_THROWS_AS(random_colours(bad), std::invalid_argument);
    CHECK_THROWS_AS(random_lights(bad), std::invalid_argument);
    CHECK_THROWS_AS(random_masses(bad), std::invalid_argument);
    CHECK_THROWS_AS(random_friction(bad), std::invalid_argument);
    CHECK_THROWS_AS(random_cameras(0, bad), std::invalid_argument);
  }
}

TEST_CASE("A randomised episode continues bit for bit from its saved state, on several domains") {
  for (const char* task : {"reacher_hard", "cheetah_run", "walker_walk", "ball_in_cup_catch"}) {
    CAPTURE(task);
    const EnvironmentConfig config{
        .task = task,
        .frame_stack = 2,
        .action_noise = .1,
        .normalization = {.mode = "running"},
        .randomization = {.colours = .1, .lights = .2, .camera = .1, .masses = .3, .friction = .4}};
    Played a(make_environment(config));
    Played b(make_environment(config));
    const std::vector<double> action(a.environment->spec().action.size(), .3);
    a.reset(3);
    for (int i = 0; i < 20; ++i)
      a.step(action);
    b.reset(8);
    std::vector<std::byte> state;
    a.environment->save_state(state);
    CHECK(b.environment->load_state(state).empty());
    for (int i = 0; i < 30; ++i)
      REQUIRE(a.step(action).observation == b.step(action).observation);
    CHECK(masses(*a.environment) == masses(*b.environment));
  }
}
