#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <numbers>
#include <set>

#include "env/make/make.hpp"
#include "env/physics.hpp"
#include "env/random.hpp"
#include "env/suite/suite_environment.hpp"

using namespace troupe::env;

namespace {

std::vector<double> reset(Environment& environment, std::uint64_t seed) {
  std::vector<double> observation(environment.spec().observation_bytes() / sizeof(double));
  const TimeStep step = environment.reset(seed, std::as_writable_bytes(std::span(observation)));
  CHECK(step.step_type == StepType::first);
  CHECK(step.reward == 0);
  CHECK(step.discount == 1);
  return observation;
}

/// The minimum and maximum of one number over many resets.
struct Range {
  double low = 1e300;
  double high = -1e300;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

} // namespace

TEST_CASE("The list of tasks is sorted, has no duplicates and includes the basic tasks") {
  const std::vector<std::string> names = task_names();
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  for (const char* needed :
       {"cartpole_balance", "cartpole_balance_sparse", "cartpole_swingup",
        "cartpole_swingup_sparse", "cartpole_two_poles", "cartpole_three_poles", "pendulum_swingup",
        "ball_in_cup_catch", "reacher_easy", "reacher_hard", "cheetah_run", "walker_stand",
        "walker_walk", "walker_run"})
    CHECK_MESSAGE(std::count(names.begin(), names.end(), needed) == 1, needed);
}

TEST_CASE("The first observation of an episode is a function of its seed") {
  for (const std::string& name : task_names()) {
    CAPTURE(name);
    const auto a = make_task(name);
    const auto b = make_task(name);
    const std::vector<double> first = reset(*a, 7);
    CHECK(first == reset(*b, 7));
    CHECK(first != reset(*b, 8));
    std::vector<double> action(a->spec().action.size(), .3);
    std::vector<double> seen(first.size());
    for (int i = 0; i < 30; ++i)
      a->step(action, std::as_writable_bytes(std::span(seen)));
    CHECK(first == reset(*a, 7)); // whatever happened in between
  }
}

TEST_CASE("An episode has 1000 steps and rewards from 0 to 1, and ends by truncation") {
  for (const std::string& name : task_names()) {
    CAPTURE(name);
    const auto environment = make_task(name);
    if (name.starts_with("lqr_")) // has only one way to end, see below
      continue;
    CHECK(environment->spec().episode_steps == 1000);
    std::vector<double> observation = reset(*environment, 3);
    Random random(11);
    std::vector<double> action(environment->spec().action.size());
    int steps = 0;
    TimeStep step;
    do {
      for (double& a : action)
        a = random.uniform(-1, 1);
      step = environment->step(action, std::as_writable_bytes(std::span(observation)));
      ++steps;
      REQUIRE(step.reward >= 0);
      REQUIRE(step.reward <= 1);
      REQUIRE(step.discount == 1);
      REQUIRE(std::all_of(observation.begin(), observation.end(),
                          [](double x) { return std::isfinite(x); }));
    } while (step.step_type == StepType::mid);
    CHECK(steps == 1000);
    CHECK(step.step_type == StepType::last);
    CHECK_THROWS_WITH_AS(environment->step(action, std::as_writable_bytes(std::span(observation))),
                         doctest::Contains("call reset() first"), std::invalid_argument);
  }
}

TEST_CASE("An LQR continues until it is at rest and then terminates") {
  const auto environment = make_task("lqr_lqr_2_1");
  CHECK(environment->spec().episode_steps == 0);
  CHECK(environment->spec().action.maximum[0] == std::numeric_limits<double>::infinity());
  std::vector<double> observation = reset(*environment, 3);
  const auto bytes = std::as_writable_bytes(std::span(observation));
  const std::vector<double> action{-3};
  TimeStep step;
  for (int i = 0; i < 3000; ++i) {
    step = environment->step(action, bytes);
    REQUIRE(step.step_type == StepType::mid);
    REQUIRE(step.discount == 1);
    REQUIRE(step.reward < 1);
  }
  CHECK(environment->physics()->data().ctrl[0] == -3); // the control is not clipped
  mjData& data = environment->physics()->data();
  for (int i = 0; i < 2; ++i) {
    data.qpos[i] = 1e-7;
    data.qvel[i] = 0;
  }
  environment->physics()->forward();
  step = environment->step(std::vector<double>{0}, bytes);
  CHECK(step.step_type == StepType::last);
  CHECK(step.discount == 0);
  CHECK(step.reward == doctest::Approx(1));
}

TEST_CASE("Swimmer and LQR tasks come in every size within their limits") {
  for (const int links : {3, 7, 100}) {
    const auto environment = make_task("swimmer_swimmer" + std::to_string(links));
    CHECK(environment->spec().action.size() == static_cast<std::size_t>(links - 1));
    CHECK(environment->spec().observations[2].shape == std::vector<std::int64_t>{3 * links});
    CHECK(environment->spec().episode_steps == 1000);
    const mjModel& model = environment->physics()->model();
    CHECK(model.jnt_range[2 * (model.njnt - 1)] == doctest::Approx(-2 * std::numbers::pi / links));
  }
  for (const auto& [bodies, motors] : {std::pair(1, 1), std::pair(4, 4), std::pair(100, 3)}) {
    const auto environment =
        make_task("lqr_lqr_" + std::to_string(bodies) + "_" + std::to_string(motors));
    CHECK(environment->spec().action.size() == static_cast<std::size_t>(motors));
    CHECK(environment->spec().observations[0].shape == std::vector<std::int64_t>{bodies});
    reset(*environment, 1);
  }
  for (const char* name : {"swimmer_swimmer2", "swimmer_swimmer101", "swimmer_swimmer999999"})
    CHECK_THROWS_WITH_AS(make_task(name), doctest::Contains("3 to 100 links"),
                         std::invalid_argument);
  for (const char* name : {"lqr_lqr_2_3", "lqr_lqr_0_0", "lqr_lqr_101_1", "lqr_lqr_5_0"})
    CHECK_THROWS_WITH_AS(make_task(name), doctest::Contains("1 to 100 masses"),
                         std::invalid_argument);
  for (const char* name :
       {"swimmer_swimmer", "swimmer_swimmer06", "swimmer_swimmer6x", "swimmer_swimmer+6",
        "swimmer_swimmer9999999999999999999", "swimmer_swimmer-6", "lqr_lqr_6", "lqr_lqr_6_",
        "lqr_lqr_6_2_1", "lqr_lqr__2", "lqr_lqr_06_2"})
    CHECK_THROWS_WITH_AS(make_task(name), doctest::Contains("nearest"), std::invalid_argument);
}

TEST_CASE("Control time steps and action bounds match dm_control") {
  const std::pair<const char*, double> expected[] = {
      {"cartpole_balance", .01}, {"pendulum_swingup", .02}, {"ball_in_cup_catch", .02},
      {"reacher_easy", .02},     {"cheetah_run", .01},      {"walker_walk", .025}};
  for (const auto& [name, seconds] : expected) {
    const auto environment = make_task(name);
    CHECK(environment->spec().control_timestep_seconds == doctest::Approx(seconds));
    for (std::size_t i = 0; i < environment->spec().action.size(); ++i) {
      CHECK(environment->spec().action.minimum[i] == -1);
      CHECK(environment->spec().action.maximum[i] == 1);
    }
  }
}

TEST_CASE("Initial states fill the ranges of dm_control") {
  const auto spread = [](const char* task, std::size_t index) {
    const auto environment = make_task(task);
    Range range;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      reset(*environment, seed);
      range.add(environment->physics()->data().qpos[index]);
    }
    return range;
  };
  const auto fills = [](const Range& range, double low, double high) {
    CHECK(range.low >= low);
    CHECK(range.high <= high);
    CHECK(range.high - range.low > .95 * (high - low));
  };
  const double pi = std::numbers::pi;
  fills(spread("cartpole_balance", 0), -.1, .1);
  fills(spread("cartpole_balance", 1), -.034, .034);
  fills(spread("pendulum_swingup", 0), -pi, pi);
  fills(spread("reacher_easy", 0), -pi, pi);
  fills(spread("reacher_easy", 1), -160 * pi / 180, 160 * pi / 180);
  fills(spread("walker_walk", 2), -pi, pi);
  fills(spread("walker_walk", 3), -20 * pi / 180, 100 * pi / 180);
  fills(spread("ball_in_cup_catch", 2), -.2, .2);
  const Range pole = spread("cartpole_swingup", 1); // mean pi, standard deviation .01
  CHECK(pole.low > pi - .06);
  CHECK(pole.high < pi + .06);
  CHECK(pole.high - pole.low > .03);
}

TEST_CASE("The reacher's target lies on its ring and has the task's size") {
  for (const auto& [name, size] :
       {std::pair("reacher_easy", .05), std::pair("reacher_hard", .015)}) {
    const auto environment = make_task(name);
    const auto other = make_task(name); // shares the compiled model, but not the target
    Physics& physics = *environment->physics();
    const auto target = static_cast<std::size_t>(3 * physics.id(mjOBJ_GEOM, "target"));
    Range distance;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      reset(*environment, seed);
      const double* place = physics.model().geom_pos + target;
      distance.add(std::hypot(place[0], place[1]));
      CHECK(physics.model().geom_size[target] == size);
      CHECK(place[0] != other->physics()->model().geom_pos[target]);
    }
    CHECK(distance.low >= .05);
    CHECK(distance.high <= .2);
    CHECK(distance.high - distance.low > .14);
    CHECK(physics.compiled() == other->physics()->compiled());
  }
}

TEST_CASE("The ball never starts inside the cup's walls and the cheetah starts settled") {
  const auto ball = make_task("ball_in_cup_catch");
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    reset(*ball, seed);
    CHECK(ball->physics()->data().ncon == 0);
  }
  const auto cheetah = make_task("cheetah_run");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    reset(*cheetah, seed);
    CHECK(cheetah->physics()->data().time == 0);
    CHECK(cheetah->physics()->data().ncon > 0); // it has fallen onto its feet
  }
}

TEST_CASE(
    "Threads that make and play environments of one model at the same time get equal results") {
  const auto play = [] {
    const auto environment = make_environment({.task = "reacher_easy"});
    std::vector<std::byte> observation(environment->spec().observation_bytes());
    const std::vector<double> action{.5, -.5};
    std::vector<std::byte> seen;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      environment->reset(seed, observation);
      for (int i = 0; i < 50; ++i)
        environment->step(action, observation);
      seen.insert(seen.end(), observation.begin(), observation.end());
    }
    return seen;
  };
  std::vector<std::future<std::vector<std::byte>>> others;
  for (int t = 0; t < 4; ++t)
    others.push_back(std::async(std::launch::async, play));
  const std::vector<std::byte> ours = play();
  for (auto& other : others)
    CHECK(other.get() == ours);
}

TEST_CASE("A stream of random numbers is uniform or normal, and repeatable") {
  Random a(5);
  Random b(5);
  Random c(6);
  double sum = 0;
  double squares = 0;
  double normal_sum = 0;
  double normal_squares = 0;
  int equal = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = a.uniform();
    CHECK_MESSAGE(u == b.uniform(), i);
    equal += u == c.uniform() ? 1 : 0;
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    sum += u;
    squares += u * u;
    const double n = a.normal();
    b.normal();
    normal_sum += n;
    normal_squares += n * n;
  }
  CHECK(equal == 0);
  CHECK(sum / kDraws == doctest::Approx(.5).epsilon(.02));
  CHECK(squares / kDraws == doctest::Approx(1.0 / 3).epsilon(.02));
  CHECK(std::abs(normal_sum / kDraws) < .03);
  CHECK(normal_squares / kDraws == doctest::Approx(1).epsilon(.04));
}
