// Random models and states: whatever the caster draws, its three pictures are complete, consistent
// with each other and reproducible.
#include "tests/env/render/random_scene.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <vector>

#include "env/compiled_model.hpp"
#include "env/golden/check_likeness.hpp"
#include "env/physics.hpp"
#include "env/render/cast_renderer.hpp"
#include "env/render/renderer.hpp"

using namespace troupe::env;

namespace {

constexpr float kUnwritten = -12345;

struct Pictures {
  std::vector<std::uint8_t> colour;
  std::vector<float> metres;
  std::vector<std::int32_t> objects;
};

Pictures draw(Renderer& renderer) {
  Pictures out{std::vector<std::uint8_t>(renderer.bytes(), 77),
               std::vector<float>(renderer.pixels(), kUnwritten),
               std::vector<std::int32_t>(2 * renderer.pixels(), -777)};
  renderer.draw(out.colour);
  renderer.draw_depth(out.metres);
  renderer.draw_segmentation(out.objects);
  return out;
}

void check_whole(const Pictures& pictures, const mjModel& model) {
  const double far = static_cast<double>(model.vis.map.zfar) * model.stat.extent;
  bool depths = true;
  bool objects = true;
  for (std::size_t i = 0; i < pictures.metres.size(); ++i) {
    const float depth = pictures.metres[i];
    const std::int32_t id = pictures.objects[2 * i];
    const std::int32_t type = pictures.objects[2 * i + 1];
    depths = depths && std::isfinite(depth) && depth > 0 && depth <= far * 1.001;
    const bool nothing = id == -1 && type == -1;
    const bool geom = type == mjOBJ_GEOM && id >= 0 && id < model.ngeom;
    const bool site = type == mjOBJ_SITE && id >= 0 && id < model.nsite;
    const bool other = type == mjOBJ_TENDON || type == mjOBJ_SKIN;
    objects = objects && (nothing || geom || site || other);
    if (nothing)
      depths = depths && depth > far * .99;
  }
  CHECK(depths);
  CHECK(objects);
}

void check_equal(const Pictures& a, const Pictures& b) {
  CHECK((a.colour == b.colour));
  CHECK((a.metres == b.metres));
  CHECK((a.objects == b.objects));
}

PixelOptions options_of(Random& random, const std::string& camera) {
  return {.height = 1 + static_cast<int>(random.uniform(0, 60)),
          .width = 1 + static_cast<int>(random.uniform(0, 60)),
          .camera = camera,
          .grey = random.uniform() < .3,
          .effects = random.uniform() < .8,
          .fog = random.uniform() < .3,
          .renderer = RendererKind::caster};
}

} // namespace

TEST_CASE("Random models are drawn completely and reproducibly, at any size and by any camera") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Physics physics(compile_model("random", RandomScene(seed).xml()));
    physics.reset();
    Random random(seed);
    for (const auto& camera : std::vector<std::string>{"0", "1", "-1"}) {
      CAPTURE(camera);
      const PixelOptions options = options_of(random, camera);
      const auto first = make_renderer(physics, options);
      const Pictures pictures = draw(*first);
      check_whole(pictures, physics.model());
      check_equal(draw(*first), pictures);
      check_equal(draw(*make_renderer(physics, options)), pictures);
    }
  }
}

TEST_CASE("States that are not finite or far away are drawn without a crash") {
  const double bad[] = {std::numeric_limits<double>::quiet_NaN(),
                        std::numeric_limits<double>::infinity(), 1e30, -1e9, 1e-300};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Physics physics(compile_model("random", RandomScene(seed).xml()));
    physics.reset();
    const auto renderer = make_renderer(
        physics, {.height = 33, .width = 47, .camera = "1", .renderer = RendererKind::caster});
    const Pictures before = draw(*renderer);
    Random random(seed);
    mjData& data = physics.data();
    const mjModel& model = physics.model();
    for (const double value : bad) {
      // Changes the drawn poses themselves, because forward() would refuse such a state.
      const int geom = static_cast<int>(random.uniform(0, static_cast<double>(model.ngeom)));
      data.geom_xpos[3 * geom + static_cast<int>(random.uniform(0, 3))] = value;
      data.geom_xmat[9 * geom + static_cast<int>(random.uniform(0, 9))] = value;
      if (model.nsite > 0)
        data.site_xpos[0] = value;
      check_whole(draw(*renderer), model);
    }
    physics.forward();
    check_equal(draw(*renderer), before); // nothing of it was left behind
  }
}

TEST_CASE("Random states of tasks are drawn completely") {
  for (const auto& task :
       std::vector<std::string>{"cheetah_run", "quadruped_escape", "dog_fetch", "stacker_stack_4",
                                "swimmer_swimmer15", "quadruped_fetch"}) {
    CAPTURE(task);
    const auto environment = make_task(task);
    begin_random_state(*environment, 1);
    const auto renderer =
        make_renderer(*environment->physics(), {.renderer = RendererKind::caster});
    std::set<std::vector<std::uint8_t>> seen;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      begin_random_state(*environment, seed);
      const Pictures pictures = draw(*renderer);
      check_whole(pictures, environment->physics()->model());
      seen.insert(pictures.colour);
    }
    CHECK(seen.size() == 5);
  }
}

TEST_CASE("The picture does not depend on the width of the processor's vectors") {
  int widths = 0;
  std::vector<Pictures> best;
  for (const auto& vectors : std::vector<std::string>{"AVX3", "AVX2", "SSE4", "NEON", "EMU128"}) {
    try {
      draw_with_vectors(vectors);
    } catch (const std::invalid_argument&) {
      continue; // not supported by this processor
    }
    ++widths;
    CAPTURE(vectors);
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      CAPTURE(seed);
      Physics physics(compile_model("random", RandomScene(seed).xml()));
      physics.reset();
      const Pictures pictures = draw(*make_renderer(
          physics, {.height = 50, .width = 61, .camera = "1", .renderer = RendererKind::caster}));
      if (best.size() < seed)
        best.push_back(pictures);
      check_equal(pictures, best[seed - 1]);
    }
  }
  CHECK(widths >= 1);
  CHECK_THROWS_WITH_AS(draw_with_vectors("MMX"), doctest::Contains("it has"),
                       std::invalid_argument);
}

// MuJoCo's list of visible geoms depends on the camera that its scene has: infinite planes are
// centred on it, and transparent geoms are sorted by their distance to it.
TEST_CASE("The first and second pictures of a renderer are equal") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Physics physics(compile_model("random", RandomScene(seed).xml()));
    physics.reset();
    const auto renderer = make_renderer(physics, {.camera = "1", .renderer = RendererKind::caster});
    std::vector<std::uint8_t> first(renderer->bytes());
    std::vector<std::uint8_t> second(renderer->bytes());
    renderer->draw(first);
    renderer->draw(second);
    CHECK((first == second));
  }
}
