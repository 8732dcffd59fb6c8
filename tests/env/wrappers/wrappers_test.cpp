#include <doctest/doctest.h>

#include <limits>

#include "env/wrappers/action_repeat.hpp"
#include "env/wrappers/action_scale.hpp"
#include "env/wrappers/flat_state.hpp"
#include "env/wrappers/frame_stack.hpp"
#include "tests/env/fake_environment.hpp"

using namespace troupe::env;

namespace {

std::vector<float> floats(std::span<const std::byte> bytes) {
  return numbers<float>(bytes);
}

} // namespace

TEST_CASE(
    "Actions from -1 to 1 are mapped to the bounds, larger ones are clipped, and NaN is refused") {
  std::vector<double> given_on;
  ActionScale environment(std::make_unique<Counting>(&given_on));
  CHECK(environment.spec().action == ActionSpec{{-1, -1}, {1, 1}});
  std::vector<std::byte> out(environment.spec().observation_bytes());
  environment.reset(0, out);
  const std::pair<std::vector<double>, std::vector<double>> cases[] = {
      {{-1, -1}, {-2, 0}}, {{1, 1}, {6, 1}}, {{0, 0}, {2, .5}}, {{-9, 1e300}, {-2, 1}}};
  for (const auto& [given, expected] : cases) {
    environment.step(given, out);
    CHECK(given_on == expected);
  }
  CHECK_THROWS_WITH_AS(environment.step(std::vector<double>{0, kNan}, out),
                       doctest::Contains("action[1]"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(environment.step(std::vector<double>{0}, out), doctest::Contains("needs 2"),
                       std::invalid_argument);
}

TEST_CASE("A repeated action adds rewards, multiplies discounts and stops at the last step") {
  ActionRepeat environment(std::make_unique<Counting>(), 3);
  CHECK(environment.spec().action_repeat == 3);
  CHECK(environment.spec().episode_steps == 2);
  std::vector<std::byte> out(environment.spec().observation_bytes());
  environment.reset(0, out);
  const std::vector<double> action{0, 0};
  const TimeStep first = environment.step(action, out);
  CHECK(first.reward == 1 + 2 + 3);
  CHECK(first.discount == .125);
  CHECK(first.step_type == StepType::mid);
  const TimeStep second = environment.step(action, out);
  CHECK(second.reward == 4 + 5); // two steps only
  CHECK(second.discount == .25);
  CHECK(second.step_type == StepType::last);
  CHECK_THROWS_AS(ActionRepeat(std::make_unique<Counting>(), 0), std::invalid_argument);
  CHECK_THROWS_AS(ActionRepeat(std::make_unique<Counting>(), 1001), std::invalid_argument);
}

TEST_CASE("States are flattened in order to float32, and a value that float32 cannot hold throws") {
  FlatState environment(std::make_unique<Counting>());
  CHECK(environment.spec().observations
        == std::vector<ArraySpec>{{"state", ElementType::float32, {3}}});
  std::vector<std::byte> out(environment.spec().observation_bytes());
  environment.reset(7, out);
  CHECK(floats(out) == std::vector<float>{7, 7, 0});
  environment.step(std::vector<double>{.25, 0}, out);
  CHECK(floats(out) == std::vector<float>{8, 8, .25F});
  CHECK_THROWS_WITH_AS(environment.step(std::vector<double>{1e300, 0}, out),
                       doctest::Contains("'pair'[1]"), std::runtime_error);
}

TEST_CASE("Stacked frames are oldest first, and an episode begins with copies of its first frame") {
  FrameStack environment(std::make_unique<FlatState>(std::make_unique<Counting>()), 3);
  CHECK(environment.spec().observations[0].shape == std::vector<std::int64_t>{9});
  CHECK(environment.spec().frame_stack == 3);
  std::vector<std::byte> out(environment.spec().observation_bytes());
  const std::vector<double> action{.5, 0};
  for (int episode = 0; episode < 2; ++episode) {
    environment.reset(10, out);
    CHECK(floats(out) == std::vector<float>{10, 10, 0, 10, 10, 0, 10, 10, 0});
    environment.step(action, out);
    CHECK(floats(out) == std::vector<float>{10, 10, 0, 10, 10, 0, 11, 11, .5F});
    std::vector<std::byte> other(out.size()); // the caller may use another buffer every time
    environment.step(action, other);
    environment.step(action, out);
    CHECK(floats(out) == std::vector<float>{11, 11, .5F, 12, 12, .5F, 13, 13, .5F});
  }
  std::vector<std::byte> small(4);
  CHECK_THROWS_WITH_AS(environment.step(action, small), doctest::Contains("it needs 36"),
                       std::invalid_argument);
  CHECK_THROWS_AS(FrameStack(std::make_unique<FlatState>(std::make_unique<Counting>()), 0),
                  std::invalid_argument);
}
