// The kernel's functions on the CPU. They show without a GPU that the shared formulas, and the
// block of memory in which frames travel, give the same pictures as the vector code.
#include <doctest/doctest.h>

#include "env/caster/cuda/batch_caster.hpp"
#include "env/caster/cuda/batch_drawing.hpp"
#include "env/render/renderer.hpp"
#include "tests/env/caster/draw_with_floats.hpp"
#include "tests/env/caster/simulations.hpp"

using namespace troupe::env;

namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

/// Stands in for a GPU: draws on the CPU as soon as a picture is requested.
class FloatsDevice : public caster::CudaDevice {
public:
  const std::byte* keep(std::span<const std::byte> bytes) override { return bytes.data(); }
  void replace(const std::byte*, std::span<const std::byte>) override {}

  void allocate_pictures(std::size_t bytes) override { pictures_.resize(bytes); }
  const std::uint8_t* pictures() const override { return pictures_.data(); }
  Staging staging(std::size_t piece, std::size_t bytes) override {
    pieces_.resize(std::max(pieces_.size(), piece + 1));
    pieces_[piece].resize(bytes / sizeof(Line) + 1);
    auto* at = reinterpret_cast<std::byte*>(pieces_[piece].data());
    return {at, at};
  }
  void begin(std::size_t, std::size_t, caster::Launch launch) override {
    if (broken)
      throw std::runtime_error("broken");
    for (int i = 0; i < launch.environments; ++i)
      caster::draw_with_floats(
          launch.frames[i], launch.format,
          std::span(pictures_).subspan(static_cast<std::size_t>(launch.first + i)
                                           * launch.format.bytes(),
                                       launch.format.bytes()));
  }
  void finish(std::span<std::uint8_t> host) override {
    if (!host.empty())
      std::copy(pictures_.begin(), pictures_.end(), host.begin());
  }

  bool broken = false;

private:
  std::vector<std::uint8_t> pictures_;
  std::vector<std::vector<Line>> pieces_;
};

/// The pictures of all states, drawn with the functions that the kernel calls for each pixel.
std::vector<std::uint8_t> draw_with_floats(std::shared_ptr<const CasterModel> model,
                                           const std::vector<const mjModel*>& models,
                                           const std::vector<const mjData*>& states,
                                           const CastOptions& options, int repetitions = 1,
                                           int threads = 1) {
  FloatsDevice device;
  caster::BatchDrawing drawing(std::move(model), static_cast<int>(states.size()), options, threads,
                               device);
  std::vector<std::uint8_t> all(drawing.bytes());
  for (int k = 0; k < repetitions; ++k)
    drawing.draw(models, states, all);
  return all;
}

std::vector<std::uint8_t> draw_with_floats(const test::Simulations& simulations,
                                           const CastOptions& options, int repetitions = 1) {
  return draw_with_floats(simulations.caster_model(), simulations.models(), simulations.states(),
                          options, repetitions);
}

double differing(const test::Simulations& simulations, const CastOptions& options, int levels) {
  return test::differing(simulations.cast(options), draw_with_floats(simulations, options), levels);
}

constexpr const char* kScene = R"(<mujoco>
  <worldbody>
    <light pos="0 0 4"/><light pos="1 -2 3" dir="0 .5 -1" directional="true"/>
    <camera name="fixed" pos="0 -4 1.5" xyaxes="1 0 0 0 .3 1" KIND/>
    <geom type="plane" size="5 5 .1" rgba=".3 .4 .5 1" material="mirror"/>
    <body pos="0 0 .6"><geom size=".4" rgba=".8 .3 .2 .5"/></body>
    <body pos="1 0 .5" euler="0 30 40"><geom type="box" size=".2 .3 .4" rgba=".2 .8 .2 .7"/></body>
    <body pos="-1 0 .5" euler="50 30 40"><geom type="cylinder" size=".2 .3"/></body>
    <body pos="-1 1 .9" euler="50 30 40"><geom type="ellipsoid" size=".2 .3 .5"/></body>
    <body pos="-.3 -.4 .5" euler="50 30 40"><geom type="capsule" size=".01 .5"/></body>
  </worldbody>
  <asset><material name="mirror" reflectance=".3"/></asset>
</mujoco>)";

constexpr const char* kHazyScene = R"(<mujoco>
  <visual><map haze=".6" zfar="4" fogstart=".5" fogend="3"/><rgba haze="1 .2 .2 1" fog=".3 .8 .4 1"/></visual>
  <worldbody>
    <light pos="0 0 4"/>
    <camera name="fixed" pos="0 -4 1.5" xyaxes="1 0 0 0 .3 1" KIND/>
    <geom type="plane" size="0 0 .1" rgba=".3 .4 .5 1" material="mirror"/>
    <body pos="0 0 .6"><geom size=".4" rgba=".8 .3 .2 .5"/></body>
    <body pos="1 1 .5"><geom type="box" size=".2 .3 .4" rgba=".2 .8 .2 .7"/></body>
    <body pos="-1 3 .9"><geom type="ellipsoid" size=".2 .3 .5"/></body>
  </worldbody>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".4 .6 .9" rgb2=".1 0 .1" width="32" height="192"/>
    <texture name="tiles" type="2d" builtin="checker" rgb1=".9 .8 .2" rgb2=".1 .2 .7" width="64" height="64"/>
    <material name="mirror" reflectance=".3" texture="tiles" texrepeat=".5 .5" texuniform="true"/>
  </asset>
</mujoco>)";

std::string replace(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

double differing(const char* scene, bool orthographic, const CastOptions& options) {
  const std::string xml =
      replace(scene, "KIND", orthographic ? "projection='orthographic' fovy='4'" : "fovy='45'");
  Physics physics(compile_model("scene", xml));
  physics.reset();
  RayCaster caster(caster_model(physics.compiled()), options);
  std::vector<std::uint8_t> expected(caster.bytes());
  caster.draw(physics.model(), physics.data(), expected);
  return test::differing(expected,
                         draw_with_floats(caster_model(physics.compiled()), {&physics.model()},
                                          {&physics.data()}, options),
                         0);
}

} // namespace

TEST_CASE("Scalar code draws the main tasks exactly as vector code does") {
  for (const char* task :
       {"cartpole_swingup", "cheetah_run", "hopper_hop", "humanoid_run", "quadruped_walk",
        "walker_walk", "quadruped_escape", "dog_run", "manipulator_bring_ball"}) {
    CAPTURE(task);
    const test::Simulations simulations(task, 2);
    CHECK(differing(simulations, {}, 0) == 0);
  }
}

TEST_CASE(
    "Scalar code draws mirrors, transparent shapes and orthographic cameras as vector code does") {
  for (const bool orthographic : {false, true}) {
    CAPTURE(orthographic);
    CHECK(differing(kScene, orthographic, {.height = 61, .width = 83}) == 0);
  }
}

TEST_CASE("Scalar code draws haze, the sky and fog as vector code does") {
  for (const bool orthographic : {false, true})
    for (const bool fog : {false, true}) {
      CAPTURE(orthographic);
      CAPTURE(fog);
      CHECK(differing(kHazyScene, orthographic, {.height = 61, .width = 83, .fog = fog}) == 0);
    }
}

TEST_CASE("Scalar code draws without effects, in grey, channels last and in odd sizes as vector "
          "code does") {
  const test::Simulations simulations("walker_walk", 2);
  CHECK(differing(simulations, {.effects = false}, 0) == 0);
  CHECK(differing(simulations, {.grey = true}, 0) == 0);
  CHECK(differing(simulations, {.height = 33, .width = 57, .layout = PixelLayout::channels_last}, 0)
        == 0);
  CHECK(differing(simulations, {.height = 1, .width = 5}, 0) == 0);
}

TEST_CASE("A batch's later pictures do not depend on its earlier ones") {
  const test::Simulations simulations("quadruped_escape", 2);
  CHECK(draw_with_floats(simulations, {}, 3) == draw_with_floats(simulations, {}));
}

TEST_CASE("Several threads that build the frames of several pieces draw the same pictures") {
  for (const char* task : {"cartpole_swingup", "quadruped_escape"}) {
    CAPTURE(task);
    const test::Simulations simulations(task, 12);
    std::vector<const mjModel*> models;
    std::vector<const mjData*> states;
    std::vector<std::uint8_t> expected;
    const CastOptions options{.height = 6, .width = 7};
    const std::vector<std::uint8_t> twelve = simulations.cast(options);
    for (int i = 0; i < 25; ++i) { // 300 pictures: two full pieces and a partial one
      models.insert(models.end(), simulations.models().begin(), simulations.models().end());
      states.insert(states.end(), simulations.states().begin(), simulations.states().end());
      expected.insert(expected.end(), twelve.begin(), twelve.end());
    }
    CHECK(draw_with_floats(simulations.caster_model(), models, states, options, 2, 3) == expected);
  }
}

TEST_CASE("A batch draws again after a failure of the device") {
  const test::Simulations simulations("cartpole_swingup", 130);
  const CastOptions options{.height = 6, .width = 7};
  for (const int threads : {1, 2}) {
    FloatsDevice device;
    caster::BatchDrawing drawing(simulations.caster_model(), 130, options, threads, device);
    std::vector<std::uint8_t> all(drawing.bytes());
    device.broken = true;
    CHECK_THROWS_WITH_AS(drawing.draw(simulations.models(), simulations.states(), all), "broken",
                         std::runtime_error);
    device.broken = false;
    drawing.draw(simulations.models(), simulations.states(), all);
    CHECK(all == simulations.cast(options));
  }
}

TEST_CASE("A batch refuses invalid arguments, and the error names the reason") {
  const test::Simulations simulations("cartpole_balance", 1);
  FloatsDevice device;
  const auto make = [&](int environments, const CastOptions& options, int threads = 1) {
    caster::BatchDrawing drawing(simulations.caster_model(), environments, options, threads,
                                 device);
  };
  CHECK_THROWS_WITH_AS(make(0, {}), doctest::Contains("environments: 0"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make(1, {}, 0), doctest::Contains("threads: 0"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make(1, {.height = 0}), doctest::Contains("height"), std::invalid_argument);
  caster::BatchDrawing drawing(simulations.caster_model(), 2, {}, 1, device);
  CHECK_THROWS_AS(drawing.draw(simulations.models(), simulations.states(), {}),
                  std::invalid_argument);
}

TEST_CASE(
    "Without a GPU, making a batch caster fails, and the error names the reason and a remedy") {
  const std::string why = BatchCaster::unavailable();
  if (why.empty()) {
    MESSAGE("skipped: there is a GPU");
    return;
  }
  CHECK(why.find("draw with the ray caster") != std::string::npos);
  const test::Simulations simulations("cartpole_balance", 1);
  CHECK_THROWS_WITH_AS(BatchCaster(simulations.caster_model(), 1, {}),
                       doctest::Contains(why.c_str()), std::runtime_error);
  CHECK_THROWS_WITH_AS(renderer_info({.renderer = RendererKind::caster_cuda}),
                       doctest::Contains(why.c_str()), std::runtime_error);
}
