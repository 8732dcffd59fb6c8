#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <set>
#include <thread>

#include "env/golden/golden.hpp"
#include "env/random.hpp"
#include "env/render/opengl_renderer.hpp"
#include "tests/env/golden/recordings.hpp"

using namespace troupe::env;

namespace {

double mean_difference(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::abs(static_cast<int>(a[i]) - static_cast<int>(b[i]));
  return sum / static_cast<double>(a.size());
}

std::unique_ptr<Environment> started(const std::string& task) {
  auto environment = make_task(task);
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  environment->reset(1, observation);
  return environment;
}

std::vector<std::uint8_t> picture(Environment& environment, const PixelOptions& options,
                                  PixelLayout layout = PixelLayout::channels_first) {
  OpenglRenderer renderer(*environment.physics(), options, layout);
  std::vector<std::uint8_t> pixels(renderer.bytes());
  renderer.draw(pixels);
  return pixels;
}

/// One task of each domain, because the tasks of a domain look alike and OpenGL in software is
/// slow.
std::vector<std::string> task_per_domain(const std::string& folder) {
  std::vector<std::string> tasks;
  std::set<std::string> domains;
  for (const std::string& task : read_golden_index(folder).tasks)
    if (domains.insert(task.substr(0, task.find('_'))).second)
      tasks.push_back(task);
  return tasks;
}

void check_frames(const std::string& folder) {
  for (const std::string& task : task_per_domain(folder)) {
    CAPTURE(task);
    const GoldenReport report = check_golden(folder, task, {}, GlBackend::automatic);
    CHECK(report.frames >= 2);
    CHECK(report.frame_error <= kGoldenFrameTolerance);
    CHECK(report.passed());
  }
}

} // namespace

TEST_CASE("Frames of the real dm_control are reproduced") {
  check_frames(kRecordings);
}

TEST_CASE("Frames of longer recordings of the real dm_control are reproduced") {
  if (const std::string folder = longer_recordings(); !folder.empty())
    check_frames(folder);
}

TEST_CASE("The backend, vendor and renderer of OpenGL are reported") {
  const GlInfo info = gl_of_this_thread(GlBackend::automatic)->info();
  CHECK_FALSE(info.backend.empty());
  CHECK_FALSE(info.vendor.empty());
  CHECK_FALSE(info.renderer.empty());
  CHECK(info.software == (info.renderer.find("llvmpipe") != std::string::npos));
}

TEST_CASE("Planes, pixels and luma show the same picture") {
  const auto environment = started("cheetah_run");
  constexpr int kHeight = 40;
  constexpr int kWidth = 56;
  PixelOptions options{.height = kHeight, .width = kWidth};
  const auto planes = picture(*environment, options);
  const auto pixels = picture(*environment, options, PixelLayout::channels_last);
  options.grey = true;
  const auto grey = picture(*environment, options);
  constexpr std::size_t kPlane = kHeight * kWidth;
  REQUIRE(planes.size() == 3 * kPlane);
  REQUIRE(grey.size() == kPlane);
  for (std::size_t i = 0; i < kPlane; ++i) {
    for (std::size_t c = 0; c < 3; ++c)
      REQUIRE(planes[c * kPlane + i] == pixels[3 * i + c]);
    const double luma =
        .299 * planes[i] + .587 * planes[kPlane + i] + .114 * planes[2 * kPlane + i];
    REQUIRE(std::abs(luma - grey[i]) <= 1.5);
  }
}

TEST_CASE("The top row of a picture comes first") {
  const auto environment = started("cartpole_balance");
  auto& data = environment->physics()->data();
  const auto upright = picture(*environment, {});
  data.qpos[1] = 3.14159265; // the pole hangs down from the cart, which is in the middle
  environment->physics()->forward();
  const auto hanging = picture(*environment, {});
  double above = 0;
  double below = 0;
  for (std::size_t y = 0; y < 84; ++y)
    for (std::size_t x = 0; x < 84; ++x)
      (y < 42 ? above : below) += std::abs(upright[y * 84 + x] - hanging[y * 84 + x]);
  CHECK(above > 0);
  CHECK(below > 0);
  double pole_above = 0; // the pole is redder than its background
  for (std::size_t y = 0; y < 42; ++y)
    for (std::size_t x = 0; x < 84; ++x)
      pole_above += upright[y * 84 + x] - hanging[y * 84 + x];
  CHECK(pole_above > 0);
}

TEST_CASE("A picture without effects is close to the one with effects, but not equal") {
  for (const char* task : {"cheetah_run", "walker_walk", "reacher_easy"}) {
    const auto environment = started(task);
    const double difference =
        mean_difference(picture(*environment, {}), picture(*environment, {.effects = false}));
    CHECK(difference > .1);
    CHECK(difference < 40);
  }
}

TEST_CASE("Cameras are found by name and by number") {
  const auto environment = started("cheetah_run");
  const auto side = picture(*environment, {.camera = "side"});
  CHECK(side == picture(*environment, {.camera = "0"}));
  const auto back = picture(*environment, {.camera = "back"});
  CHECK(back == picture(*environment, {.camera = "1"}));
  CHECK(side != back);
  CHECK(picture(*environment, {.camera = "-1"}) != side);
}

TEST_CASE("Several renderers of one thread share its context and do not disturb each other") {
  const auto cheetah = started("cheetah_run");
  const auto walker = started("walker_walk");
  const PixelOptions small{.height = 32, .width = 32, .effects = false};
  OpenglRenderer a(*cheetah->physics(), small);
  OpenglRenderer b(*walker->physics(), small);
  OpenglRenderer c(*cheetah->physics(), {.height = 64, .width = 48});
  const auto gl = gl_of_this_thread(GlBackend::automatic);
  const auto textures = [&gl] { // sets of textures in the thread's context
    return std::ranges::count_if(gl->shared(),
                                 [](const auto& entry) { return !entry.second.expired(); });
  };
  CHECK(textures() == 3);
  const OpenglRenderer like_a(*cheetah->physics(), small);
  CHECK(textures() == 3); // of the same model and size, so it shares a's
  std::vector<std::uint8_t> first(a.bytes());
  std::vector<std::uint8_t> again(a.bytes());
  std::vector<std::uint8_t> other(b.bytes());
  std::vector<std::uint8_t> large(c.bytes());
  a.draw(first);
  for (int i = 0; i < 3; ++i) {
    b.draw(other);
    c.draw(large);
    a.draw(again);
    CHECK(first == again);
  }
  CHECK(first != other);
  CHECK_THROWS_AS(a.draw(large), std::invalid_argument);
}

TEST_CASE("Threads draw at the same time, each with its own context") {
  const auto reference = picture(*started("cheetah_run"), {.effects = false});
  std::vector<std::future<bool>> results;
  for (int t = 0; t < 3; ++t)
    results.push_back(std::async(std::launch::async, [&reference] {
      const auto environment = started("cheetah_run");
      OpenglRenderer renderer(*environment->physics(), {.effects = false});
      std::vector<std::uint8_t> pixels(renderer.bytes());
      bool equal = true;
      for (int i = 0; i < 20; ++i) {
        renderer.draw(pixels);
        equal = equal && pixels == reference;
      }
      return equal;
    }));
  for (auto& result : results)
    CHECK(result.get());
}

TEST_CASE("An environment that is made and destroyed on one thread may play on another") {
  const auto environment = make_environment(
      {.task = "cartpole_balance", .pixels = PixelOptions{.height = 32, .width = 32}});
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  std::jthread([&] {
    environment->reset(1, observation);
    environment->step(std::vector<double>{0}, observation);
  }).join();
  const std::vector<std::byte> there = observation;
  environment->reset(1, observation); // its thread has ended, so the context is free
  environment->step(std::vector<double>{0}, observation);
  CHECK(there == observation);
}

TEST_CASE(
    "Pixels are stacked along channels, drawn once per agent step, and restored bit for bit") {
  const EnvironmentConfig config{.task = "reacher_hard",
                                 .pixels =
                                     PixelOptions{.height = 24, .width = 20, .effects = false},
                                 .frame_stack = 3,
                                 .action_repeat = 2};
  const auto a = make_environment(config);
  const auto b = make_environment(config);
  REQUIRE(a->spec().observations
          == std::vector<ArraySpec>{{"pixels", ElementType::uint8, {9, 24, 20}}});
  CHECK(a->spec().episode_steps == 500);
  std::vector<std::byte> seen_a(a->spec().observation_bytes());
  std::vector<std::byte> seen_b(seen_a.size());
  a->reset(1, seen_a);
  b->reset(2, seen_b);
  CHECK(seen_a != seen_b);
  Random random(3);
  const auto draw = [&] {
    return std::vector<double>{random.uniform(-1, 1), random.uniform(-1, 1)};
  };
  for (int i = 0; i < 25; ++i) {
    const auto before = seen_a;
    a->step(draw(), seen_a);
    REQUIRE(std::equal(before.begin() + 3 * 480, before.end(), seen_a.begin()));
  }
  std::vector<std::byte> state;
  a->save_state(state);
  CHECK(b->load_state(state).empty());
  for (int i = 0; i < 25; ++i) {
    const auto action = draw();
    const TimeStep x = a->step(action, seen_a);
    const TimeStep y = b->step(action, seen_b);
    REQUIRE(x.reward == y.reward);
    REQUIRE(seen_a == seen_b);
  }
}

TEST_CASE("A process that draws with one OpenGL library refuses to draw with another") {
  const auto gl = gl_of_this_thread(GlBackend::automatic);
  if (gl->info().backend.starts_with("EGL"))
    CHECK_THROWS_WITH_AS(gl_of_this_thread(GlBackend::osmesa),
                         doctest::Contains("already draws with EGL"), std::runtime_error);
  else
    CHECK_THROWS_WITH_AS(gl_of_this_thread(GlBackend::egl), doctest::Contains("EGL"),
                         std::runtime_error);
}
