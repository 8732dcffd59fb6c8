// Wrappers that render.
#include <doctest/doctest.h>

#include <algorithm>

#include "env/make/make.hpp"
#include "env/wrappers/dictionary.hpp"
#include "env/wrappers/frame_sink.hpp"
#include "tests/env/fake_environment.hpp"

using namespace troupe::env;

namespace {

PixelOptions small() {
  return {.height = 24, .width = 32, .effects = false};
}

std::vector<std::byte> seen_by(PixelOptions options, const std::string& camera) {
  options.camera = camera;
  Played played(make_environment({.task = "walker_walk", .pixels = options}));
  return played.reset(3).step({1, 1, 1, 1, 1, 1}).observation;
}

/// Shows the physics of `other`, if any, instead of its own.
class ShowsAnother final : public Wrapper {
public:
  ShowsAnother(std::unique_ptr<Environment> inner, Environment* const& other)
      : Wrapper(std::move(inner)), other_(other) {}
  Physics* physics() override { return other_ != nullptr ? other_->physics() : Wrapper::physics(); }

private:
  Environment* const& other_;
};

} // namespace

TEST_CASE("The pictures of several cameras are concatenated in order") {
  PixelOptions options = small();
  options.cameras = {"side", "back", "-1"};
  Played played(make_environment({.task = "walker_walk", .pixels = options}));
  CHECK(played.environment->spec().observations
        == std::vector<ArraySpec>{{"pixels", ElementType::uint8, {9, 24, 32}}});
  played.reset(3).step({1, 1, 1, 1, 1, 1});
  std::vector<std::byte> expected;
  for (const std::string& camera : options.cameras) {
    const auto picture = seen_by(small(), camera);
    expected.insert(expected.end(), picture.begin(), picture.end());
  }
  CHECK(played.observation == expected);
  options.cameras = {"side", "front"};
  CHECK_THROWS_WITH_AS(make_environment({.task = "walker_walk", .pixels = options}),
                       doctest::Contains("'front' is not a camera"), std::invalid_argument);
  options.cameras.assign(17, "side");
  CHECK_THROWS_WITH_AS(make_environment({.task = "walker_walk", .pixels = options}),
                       doctest::Contains("at most 16"), std::invalid_argument);
}

TEST_CASE("A dictionary has its stacked pictures first and then the newest states") {
  const EnvironmentConfig config{.task = "walker_walk",
                                 .pixels = small(),
                                 .frame_stack = 2,
                                 .observations = {"state", "pixels", "pixels/back", "height"}};
  Played played(make_environment(config));
  const EnvironmentSpec& spec = played.environment->spec();
  CHECK(spec.observations
        == std::vector<ArraySpec>{{"pixels", ElementType::uint8, {6, 24, 32}},
                                  {"pixels/back", ElementType::uint8, {6, 24, 32}},
                                  {"state", ElementType::float32, {24}},
                                  {"height", ElementType::float32, {1}}});
  played.reset(3).step({1, 1, 1, 1, 1, 1});
  const auto newest = [&](std::size_t i) {
    auto array = std::span(played.observation)
                     .subspan(spec.observation_offset(i), spec.observations[i].bytes());
    if (spec.stacks(i))
      array = array.last(array.size() / 2);
    return std::vector<std::byte>(array.begin(), array.end());
  };
  CHECK(newest(0) == seen_by(small(), "0"));
  CHECK(newest(1) == seen_by(small(), "back"));
  Played states(make_environment({.task = "walker_walk"}));
  CHECK(newest(2) == states.reset(3).step({1, 1, 1, 1, 1, 1}).observation);
}

TEST_CASE(
    "A dictionary draws in a later episode if not all of its renderers could be made before") {
  const auto pendulum = make_task("pendulum_swingup"); // without a camera of the name "back"
  Environment* other = nullptr;
  const std::vector<std::string> names{"pixels", "pixels/back"};
  Played played(std::make_unique<Dictionary>(
      std::make_unique<ShowsAnother>(make_task("walker_walk"), other), names, small()));
  other = pendulum.get();
  CHECK_THROWS_WITH_AS(played.reset(3), doctest::Contains("'back' is not a camera"),
                       std::invalid_argument);
  other = nullptr;
  played.reset(3).step({1, 1, 1, 1, 1, 1});
  std::vector<std::byte> expected = seen_by(small(), "0");
  const auto back = seen_by(small(), "back");
  expected.insert(expected.end(), back.begin(), back.end());
  CHECK(played.observation == expected);
}

TEST_CASE("Randomised colours, lights and cameras are visible and continue from a saved state") {
  EnvironmentConfig config{.task = "cheetah_run", .pixels = small()};
  const std::vector<double> action(6, .5);
  Played plain(make_environment(config));
  const auto bare = plain.reset(3).observation;
  for (auto member : {&RandomizationConfig::colours, &RandomizationConfig::lights,
                      &RandomizationConfig::camera, &RandomizationConfig::field_of_view}) {
    config.randomization = {};
    config.randomization.*member = .5;
    Played a(make_environment(config));
    CHECK(a.reset(3).observation != bare);
    const auto first = a.observation;
    CHECK(a.reset(4).observation != first);
    CHECK(a.reset(3).observation == first);
    std::vector<std::byte> state;
    a.environment->save_state(state);
    Played b(make_environment(config));
    b.reset(9);
    b.environment->load_state(state);
    CHECK(a.step(action).observation == b.step(action).observation);
  }
}

TEST_CASE("A frame sink gets every n-th picture of the first episodes and changes no observation") {
  std::vector<std::int64_t> steps;
  std::vector<std::uint8_t> first;
  StepType last = StepType::first;
  const auto sink = [&](const Frame& frame) {
    if (steps.empty())
      first.assign(frame.rgb.begin(), frame.rgb.end());
    steps.push_back(100 * frame.episode + frame.step);
    last = frame.step_type;
  };
  PixelOptions options = small();
  const EnvironmentConfig config{.task = "pendulum_swingup", .time_limit = 6};
  Played filmed(std::make_unique<FrameSink>(
      make_environment(config), FrameSinkOptions{.pixels = options, .every = 3, .episodes = 2},
      sink));
  Played plain(make_environment(config));
  for (const std::uint64_t seed : {1, 2, 3}) {
    filmed.reset(seed);
    plain.reset(seed);
    for (int i = 0; i < 6; ++i)
      CHECK(filmed.step({1}).observation == plain.step({1}).observation);
  }
  CHECK(steps == std::vector<std::int64_t>{0, 3, 6, 100, 103, 106});
  CHECK(last == StepType::last);
  CHECK(first.size() == 24 * 32 * 3);
  CHECK(std::count(first.begin(), first.end(), std::uint8_t{0})
        < static_cast<std::ptrdiff_t>(first.size()));
  CHECK_THROWS_WITH_AS(FrameSink(std::make_unique<Counting>(), {}, sink),
                       doctest::Contains("no physics"), std::invalid_argument);
  CHECK_THROWS_AS(FrameSink(make_environment(config), {.every = 0}, sink), std::invalid_argument);
  CHECK(steps_per_frame(plain.environment->spec(), 30) == 2); // steps of 0.02 s
}
