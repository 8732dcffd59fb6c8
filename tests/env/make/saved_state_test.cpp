#include <doctest/doctest.h>

#include "env/make/make.hpp"
#include "env/random.hpp"

using namespace troupe::env;

namespace {

struct Player {
  std::unique_ptr<Environment> environment;
  std::vector<std::byte> observation;
  explicit Player(const EnvironmentConfig& config)
      : environment(make_environment(config)),
        observation(environment->spec().observation_bytes()) {}
  TimeStep step(Random& random) {
    std::vector<double> action(environment->spec().action.size());
    for (double& a : action)
      a = random.uniform(-1, 1);
    return environment->step(action, observation);
  }
};

/// Steps both with the same actions and checks that they observe and return the same bits.
void check_equal_future(Player& a, Player& b, int steps) {
  Random actions_a(99);
  Random actions_b(99);
  for (int i = 0; i < steps; ++i) {
    const TimeStep x = a.step(actions_a);
    const TimeStep y = b.step(actions_b);
    REQUIRE(x.reward == y.reward);
    REQUIRE(x.step_type == y.step_type);
    REQUIRE(a.observation == b.observation);
  }
}

} // namespace

TEST_CASE("A saved episode continues bit for bit from its beginning and from its middle") {
  for (const std::string& task : task_names()) {
    CAPTURE(task);
    for (const int played : {0, 137}) {
      const EnvironmentConfig config{.task = task, .frame_stack = 3, .action_repeat = 2};
      Player a(config);
      Player b(config);
      a.environment->reset(21, a.observation);
      b.environment->reset(4, b.observation); // another episode, to be replaced
      Random random(5);
      for (int i = 0; i < played; ++i)
        a.step(random);
      std::vector<std::byte> state{std::byte{42}}; // save_state() appends to it
      a.environment->save_state(state);
      state.push_back(std::byte{43});
      const auto rest = b.environment->load_state(std::span(state).subspan(1));
      REQUIRE(rest.size() == 1);
      CHECK(rest[0] == std::byte{43});
      check_equal_future(a, b, 100);
    }
  }
}

TEST_CASE("A state loaded into a fresh environment continues to the end of the episode") {
  Player a({.task = "walker_walk"});
  a.environment->reset(1, a.observation);
  Random random(2);
  for (int i = 0; i < 990; ++i)
    a.step(random);
  std::vector<std::byte> state;
  a.environment->save_state(state);
  Player b({.task = "walker_walk"});
  CHECK(b.environment->load_state(state).empty());
  check_equal_future(a, b, 10);
  CHECK_THROWS_AS(b.step(random), std::invalid_argument); // both have ended
}

TEST_CASE("A truncated or foreign state is refused") {
  Player cheetah({.task = "cheetah_run"});
  cheetah.environment->reset(1, cheetah.observation);
  std::vector<std::byte> state;
  cheetah.environment->save_state(state);
  for (std::size_t size = 0; size < state.size(); size += 7)
    CHECK_THROWS_AS(cheetah.environment->load_state(std::span(state).first(size)),
                    std::invalid_argument);
  Player walker({.task = "walker_walk"});
  CHECK_THROWS_AS(walker.environment->load_state(state), std::invalid_argument);
  Player stacked({.task = "cheetah_run", .frame_stack = 2});
  CHECK_THROWS_AS(stacked.environment->load_state(state), std::invalid_argument);
  CHECK(cheetah.environment->load_state(state).empty()); // still usable after rejected states
}
