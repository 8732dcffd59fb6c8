#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>

#include "env/gym/gym.hpp"
#include "env/gym/gym_environment.hpp"
#include "env/make/make.hpp"
#include "env/physics.hpp"
#include "tests/env/gym/played.hpp"

using namespace troupe::env;

TEST_CASE("Sizes, time steps and time limits of Gym tasks match Gymnasium") {
  struct Row {
    const char* name;
    std::size_t observation;
    std::size_t action;
    std::int64_t steps;
    double seconds;
    double bound;
  };
  const Row rows[] = {{"Ant-v5", 105, 8, 1000, .05, 1},
                      {"HalfCheetah-v5", 17, 6, 1000, .05, 1},
                      {"Hopper-v5", 11, 3, 1000, .008, 1},
                      {"Humanoid-v5", 348, 17, 1000, .015, .4},
                      {"HumanoidStandup-v5", 348, 17, 1000, .015, .4},
                      {"InvertedDoublePendulum-v5", 9, 1, 1000, .05, 1},
                      {"InvertedPendulum-v5", 4, 1, 1000, .04, 3},
                      {"Pusher-v5", 23, 7, 100, .05, 2},
                      {"Reacher-v5", 10, 2, 50, .02, 1},
                      {"Swimmer-v5", 8, 2, 1000, .04, 1},
                      {"Walker2d-v5", 17, 6, 1000, .008, 1}};
  std::vector<std::string> names;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    names.emplace_back(row.name);
    const auto environment = make_gym(row.name);
    const EnvironmentSpec& spec = environment->spec();
    CHECK(spec.name == row.name);
    CHECK(spec.observation_bytes() == row.observation * sizeof(double));
    CHECK(spec.action.size() == row.action);
    CHECK(spec.episode_steps == row.steps);
    CHECK(spec.control_timestep_seconds == doctest::Approx(row.seconds));
    for (std::size_t i = 0; i < row.action; ++i) {
      CHECK(spec.action.minimum[i] == -row.bound);
      CHECK(spec.action.maximum[i] == row.bound);
    }
  }
  CHECK(gym_names() == names);
}

TEST_CASE("A Gym episode is a function of its seed on any thread") {
  const auto episode = [](const std::string& name, std::uint64_t seed) {
    Played played(name);
    played.reset(seed + 1);
    Random random(5);
    played.step_randomly(random); // the past must not matter
    played.reset(seed);
    std::vector<double> seen = played.observation;
    TimeStep last;
    played.play(random, 12, last);
    seen.insert(seen.end(), played.observation.begin(), played.observation.end());
    seen.push_back(last.reward);
    return seen;
  };
  for (const std::string& name : gym_names()) {
    CAPTURE(name);
    auto elsewhere = std::async(std::launch::async, episode, name, 7);
    const std::vector<double> here = episode(name, 7);
    CHECK(here == elsewhere.get());
    CHECK(here != episode(name, 8));
  }
}

TEST_CASE("At the time limit, an episode is truncated with a last step of discount 1") {
  for (const auto& [name, limit] :
       {std::pair{"Reacher-v5", 50}, {"Pusher-v5", 100}, {"Swimmer-v5", 1000}}) {
    CAPTURE(name);
    Played played(name);
    CHECK(played.reset(1).step_type == StepType::first);
    Random random(1);
    TimeStep last;
    CHECK(played.play(random, 2000, last) == limit);
    CHECK(last.discount == 1);
    CHECK_THROWS_WITH_AS(played.step_randomly(random), doctest::Contains("call reset() first"),
                         std::invalid_argument);
  }
  Played shorter("HalfCheetah-v5", {.values = {{"max_episode_steps", "5"}}});
  shorter.reset(1);
  Random random(1);
  TimeStep last;
  CHECK(shorter.play(random, 2000, last) == 5);
  Played endless("Reacher-v5", {.values = {{"max_episode_steps", "-1"}}});
  CHECK(endless.environment->spec().episode_steps == 0);
  endless.reset(1);
  CHECK(endless.play(random, 300, last) == 300);
  CHECK(last.step_type == StepType::mid);
}

TEST_CASE("A fall terminates the episode with discount 0, even at the time limit") {
  for (const char* name : {"Ant-v5", "Hopper-v5", "Walker2d-v5", "Humanoid-v5",
                           "InvertedPendulum-v5", "InvertedDoublePendulum-v5"}) {
    CAPTURE(name);
    const auto fall = [&](const std::map<std::string, std::string>& values, TimeStep& last) {
      Played played(name, {.values = values});
      played.reset(3);
      Random random(2);
      const int steps = played.play(random, 2000, last);
      if (last.discount == 0)
        CHECK(part(*played.environment, "reward_survive") == 0);
      return std::to_string(steps);
    };
    TimeStep last;
    const std::string steps = fall({}, last);
    CHECK(last.step_type == StepType::last);
    REQUIRE(last.discount == 0);
    CHECK(fall({{"max_episode_steps", steps}}, last) == steps);
    CHECK(last.discount == 0);
    const std::string before = std::to_string(std::stoi(steps) - 1);
    if (before == "0")
      continue;
    CHECK(fall({{"max_episode_steps", before}}, last) == before);
    CHECK(last.discount == 1);
  }
}

TEST_CASE(
    "Without termination, an episode continues in an unhealthy state without the healthy reward") {
  for (const char* name : {"Ant-v5", "Hopper-v5", "Walker2d-v5", "Humanoid-v5"}) {
    CAPTURE(name);
    Played played(name,
                  {.values = {{"terminate_when_unhealthy", "false"}, {"healthy_reward", "2.5"}}});
    played.reset(1);
    const double healthy = 2.5;
    Random random(2);
    TimeStep last;
    int unhealthy = 0;
    for (int i = 0; i < 400; ++i) {
      last = played.step_randomly(random);
      REQUIRE(last.step_type == StepType::mid);
      const double survive = part(*played.environment, "reward_survive");
      CHECK((survive == 0 || survive == healthy));
      unhealthy += survive == 0 ? 1 : 0;
    }
    if (std::string(name) != "Ant-v5")
      CHECK(unhealthy > 0);
  }
}

TEST_CASE("The parts of a reward add up to the reward") {
  for (const std::string& name : gym_names()) {
    CAPTURE(name);
    Played played(name);
    played.reset(1);
    for (const RewardPart& p : gym_reward_parts(*played.environment))
      CHECK(p.value == 0);
    Random random(2);
    const TimeStep step = played.step_randomly(random);
    double sum = name == "HumanoidStandup-v5" ? 1 : 0;
    for (const RewardPart& p : gym_reward_parts(*played.environment))
      sum += p.value;
    CHECK(sum == doctest::Approx(step.reward).epsilon(1e-12));
  }
  const auto other = make_task("cheetah_run");
  CHECK_THROWS_WITH_AS(gym_reward_parts(*other), doctest::Contains("cheetah_run"),
                       std::invalid_argument);
}

TEST_CASE("Observations are listed by name, and options remove parts of them") {
  using Names = std::vector<std::string>;
  const auto shown = [](const std::string& name, const std::map<std::string, std::string>& values) {
    Names names;
    const auto environment = make_gym(name, {.values = values});
    for (const ArraySpec& array : environment->spec().observations)
      names.push_back(array.name);
    return names;
  };
  CHECK(shown("Ant-v5", {}) == Names{"qpos", "qvel", "cfrc_ext"});
  CHECK(shown("Ant-v5", {{"include_cfrc_ext_in_observation", "false"}}) == Names{"qpos", "qvel"});
  CHECK(shown("Humanoid-v5", {})
        == Names{"qpos", "qvel", "cinert", "cvel", "qfrc_actuator", "cfrc_ext"});
  CHECK(shown("HumanoidStandup-v5",
              {{"include_cinert_in_observation", "False"}, {"include_cvel_in_observation", "0"}})
        == Names{"qpos", "qvel", "qfrc_actuator", "cfrc_ext"});
  for (const auto& [name, hidden] : {std::pair{"HalfCheetah-v5", 1},
                                     {"Hopper-v5", 1},
                                     {"Walker2d-v5", 1},
                                     {"Swimmer-v5", 2},
                                     {"Ant-v5", 2},
                                     {"Humanoid-v5", 2},
                                     {"HumanoidStandup-v5", 2}}) {
    CAPTURE(name);
    Played all(name, {.values = {{"exclude_current_positions_from_observation", "false"}}});
    Played some(name);
    all.reset(4);
    some.reset(4);
    REQUIRE(all.observation.size() == some.observation.size() + static_cast<std::size_t>(hidden));
    CHECK(std::equal(some.observation.begin(), some.observation.end(),
                     all.observation.begin() + hidden));
    CHECK(all.observation[0] == all.environment->physics()->data().qpos[0]);
  }
}

TEST_CASE("Actions are clipped to their bounds and must be finite") {
  Played inside("Humanoid-v5");
  Played outside("Humanoid-v5");
  inside.reset(1);
  outside.reset(1);
  const std::vector<double> most(17, .4);
  const std::vector<double> more(17, 7);
  CHECK(inside.step(most).reward == outside.step(more).reward);
  CHECK(inside.observation == outside.observation);
  std::vector<double> bad = most;
  bad[3] = std::nan("");
  CHECK_THROWS_WITH_AS(inside.step(bad), doctest::Contains("action[3] is nan"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(inside.step(std::span(most).first(16)), doctest::Contains("it needs 17"),
                       std::invalid_argument);
  CHECK(inside.step(most).step_type == StepType::mid); // a refused action changes nothing
}

TEST_CASE(
    "A Gym episode continues bit for bit after load_state, at its beginning and in its middle") {
  for (const std::string& name : gym_names()) {
    for (const int before : {0, 3}) {
      CAPTURE(name);
      CAPTURE(before);
      const GymOptions options{.values = {{"max_episode_steps", "11"}}};
      Played one(name, options);
      Played two(name, options);
      one.reset(3);
      two.reset(9);
      Random random(1);
      TimeStep last;
      REQUIRE(one.play(random, before, last) == before);
      REQUIRE(last.step_type != StepType::last);
      std::vector<std::byte> state;
      one.environment->save_state(state);
      const auto* parts = gym_reward_parts(*one.environment).data();
      const double first_part = parts[0].value;
      const auto left = two.environment->load_state(state);
      CHECK(left.empty());
      CHECK(gym_reward_parts(*two.environment)[0].value == first_part);
      const Physics& a = *one.environment->physics();
      const Physics& b = *two.environment->physics();
      CHECK(std::memcmp(a.data().xpos, b.data().xpos,
                        3 * static_cast<std::size_t>(a.model().nbody) * sizeof(double))
            == 0);
      Random other = random;
      for (int i = 0; i < 8; ++i) {
        const TimeStep x = one.step_randomly(random);
        const TimeStep y = two.step_randomly(other);
        CHECK(x.reward == y.reward);
        CHECK(x.discount == y.discount);
        CHECK(one.observation == two.observation);
        REQUIRE(x.step_type == y.step_type);
        if (x.step_type == StepType::last)
          break;
      }
      CHECK_THROWS_AS(two.environment->load_state(std::span(state).first(state.size() - 8)),
                      std::invalid_argument);
      CHECK_THROWS_WITH_AS(two.step_randomly(other), doctest::Contains("call reset() first"),
                           std::invalid_argument);
    }
  }
}

TEST_CASE("An unstable simulation is an error of the current episode only") {
  gym::GymEnvironment environment(gym::half_cheetah_v5(), {});
  std::vector<std::byte> observation(environment.spec().observation_bytes());
  const std::vector<double> action(6, 0);
  std::vector<double> qpos(9, 0);
  std::vector<double> qvel(9, 1e12);
  environment.reset_to(qpos, qvel, observation);
  CHECK_THROWS_WITH_AS(environment.step(action, observation), doctest::Contains("half_cheetah"),
                       std::runtime_error);
  CHECK_THROWS_AS(environment.step(action, observation), std::invalid_argument);
  environment.reset(1, observation);
  CHECK(environment.step(action, observation).step_type == StepType::mid);
  CHECK_THROWS_WITH_AS(environment.reset_to(qpos, action, observation),
                       doctest::Contains("it needs 9 and 9"), std::invalid_argument);
}
