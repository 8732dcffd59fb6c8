#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "env/caster/draw_list.hpp"
#include "env/caster/ray_caster.hpp"
#include "env/physics.hpp"
#include "env/random.hpp"

using namespace troupe::env;

namespace {

constexpr const char* kScene = R"(<mujoco>
  <visual><headlight ambient=".4 .4 .4" diffuse=".8 .8 .8" specular=".1 .1 .1"/></visual>
  <worldbody>
    <light pos="0 0 4"/>
    <camera name="fixed" pos="0 -4 1.5" xyaxes="1 0 0 0 .3 1"/>
    <geom name="floor" type="plane" size="5 5 .1" rgba=".3 .4 .5 1"/>
    <body pos="0 0 .6"><freejoint/><geom name="ball" size=".4" rgba=".8 .3 .2 1"/></body>
    <body pos="1 0 .5"><freejoint/><geom name="box" type="box" size=".2 .3 .4"/></body>
  </worldbody>
</mujoco>)";

std::unique_ptr<Physics> simulate(const std::string& xml) {
  auto physics = std::make_unique<Physics>(compile_model("scene", xml));
  physics->reset();
  return physics;
}

std::vector<std::uint8_t> draw(const Physics& physics, const CastOptions& options) {
  RayCaster caster(caster_model(physics.compiled()), options);
  std::vector<std::uint8_t> picture(caster.bytes(), 77);
  caster.draw(physics.model(), physics.data(), picture);
  return picture;
}

/// Sum of a pixel's colour channels.
int brightness(const std::vector<std::uint8_t>& pixels, int width, int x, int y) {
  const std::uint8_t* at = pixels.data() + 3 * (y * width + x);
  return at[0] + at[1] + at[2];
}

std::string number(double value) {
  return std::to_string(value) + " ";
}

/// Shapes of all kinds and orientations, and a few planes, in front of a camera.
std::string random_shapes(Random& random, int count) {
  std::string xml = "<mujoco><worldbody><camera pos='0 0 0'/>"
                    "<geom type='plane' size='20 20 1' pos='0 -3 -8' euler='-80 20 0'/>";
  const char* kinds[] = {"sphere", "capsule", "ellipsoid", "cylinder", "box"};
  for (int i = 0; i < count; ++i) {
    xml += std::string("<geom type='") + kinds[i % 5] + "' pos='";
    xml += number(random.uniform(-4, 4)) + number(random.uniform(-4, 4))
           + number(random.uniform(-14, -3));
    xml += "' euler='" + number(random.uniform(0, 180)) + number(random.uniform(0, 180))
           + number(random.uniform(0, 180)) + "' size='";
    for (int k = 0; k < (i % 5 == 0 ? 1 : 3); ++k)
      if (k < 2 || i % 5 == 2 || i % 5 == 4)
        xml += number(random.uniform(.1, .5));
    xml += "'/>";
  }
  return xml + "</worldbody></mujoco>";
}

/// Share of pixels whose depth and segmentation match what MuJoCo's own ray hits.
double agreement(const Physics& physics, int side = 64) {
  RayCaster caster(caster_model(physics.compiled()), {.height = side, .width = side});
  const auto pixels = static_cast<std::size_t>(side * side);
  std::vector<float> depth(pixels);
  std::vector<std::int32_t> objects(2 * pixels);
  caster.draw_depth(physics.model(), physics.data(), depth);
  caster.draw_segmentation(physics.model(), physics.data(), objects);
  const double half = std::tan(physics.model().cam_fovy[0] * mjPI / 360);
  int equal = 0;
  for (int i = 0; i < side * side; ++i) {
    // The camera is at the origin and looks along -z.
    const double x = (2 * (i % side + .5) / side - 1) * half;
    const double y = (1 - 2 * (i / side + .5) / side) * half;
    const mjtNum origin[3] = {0, 0, 0};
    const mjtNum direction[3] = {x, y, -1};
    int geom = -1;
    mjtNum normal[3];
    const mjtNum distance =
        mj_ray(&physics.model(), &physics.data(), origin, direction, nullptr, 1, -1, &geom, normal);
    const auto pixel = static_cast<std::size_t>(i);
    if (geom != objects[2 * pixel])
      continue;
    equal += geom < 0 || std::abs(depth[pixel] - distance) < 1e-3 * distance ? 1 : 0;
  }
  return static_cast<double>(equal) / (side * side);
}

} // namespace

TEST_CASE("Invalid options are refused, and the error names the key, the value and the rule") {
  const auto physics = simulate(kScene);
  const auto model = caster_model(physics->compiled());
  const auto refused = [&](const CastOptions& options, const char* part) {
    CHECK_THROWS_WITH_AS(RayCaster(model, options), doctest::Contains(part), std::invalid_argument);
  };
  refused({.height = 0}, "height: 0");
  refused({.width = 0}, "width: 0");
  refused({.height = 1000000, .width = 1000000}, "height: 1000000");
  refused({.width = -5}, "from 1 to 4096");
  refused({.camera = 1}, "camera: 1 is not a camera");
  refused({.camera = -2}, "-1, the free camera");
  CHECK_THROWS_AS(RayCaster(nullptr, {}), std::invalid_argument);
  CHECK_THROWS_AS(caster_model(nullptr), std::invalid_argument);
  RayCaster caster(model, {});
  std::vector<std::uint8_t> small(caster.bytes() - 1);
  CHECK_THROWS_WITH_AS(caster.draw(physics->model(), physics->data(), small),
                       doctest::Contains("needs a buffer of 21168 bytes"), std::invalid_argument);
  std::vector<float> few(5);
  CHECK_THROWS_AS(caster.draw_depth(physics->model(), physics->data(), few), std::invalid_argument);
  std::vector<std::int32_t> half(84 * 84);
  CHECK_THROWS_AS(caster.draw_segmentation(physics->model(), physics->data(), half),
                  std::invalid_argument);
}

TEST_CASE(
    "A compiled model has one caster model, which its callers share until the last drops it") {
  const auto physics = simulate(kScene);
  auto one = caster_model(physics->compiled());
  CHECK(one == caster_model(physics->compiled()));
  CHECK(one != caster_model(simulate(kScene)->compiled()));
  const std::weak_ptr<const CasterModel> held = one;
  auto caster = std::make_unique<RayCaster>(std::move(one), CastOptions{});
  CHECK(held.lock() == caster_model(physics->compiled())); // the caster holds it
  caster.reset();
  CHECK(held.expired());
  CHECK(caster_model(physics->compiled()) != nullptr);
}

TEST_CASE("Layouts and grey show the same picture") {
  const auto physics = simulate(kScene);
  constexpr int kHeight = 37;
  constexpr int kWidth = 53;
  CastOptions options{.height = kHeight, .width = kWidth};
  const auto planes = draw(*physics, options);
  options.layout = PixelLayout::channels_last;
  const auto pixels = draw(*physics, options);
  options.grey = true;
  const auto grey = draw(*physics, options);
  REQUIRE(planes.size() == 3 * kHeight * kWidth);
  REQUIRE(pixels.size() == planes.size());
  REQUIRE(grey.size() == kHeight * kWidth);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const int value[3] = {planes[static_cast<std::size_t>(y * kWidth + x)],
                            planes[static_cast<std::size_t>((kHeight + y) * kWidth + x)],
                            planes[static_cast<std::size_t>((2 * kHeight + y) * kWidth + x)]};
      for (int c = 0; c < 3; ++c) {
        REQUIRE(pixels[static_cast<std::size_t>(3 * (y * kWidth + x) + c)] == value[c]);
      }
      const double luma = .299 * value[0] + .587 * value[1] + .114 * value[2];
      REQUIRE(std::abs(grey[static_cast<std::size_t>(y * kWidth + x)] - luma) <= 1.5);
    }
}

TEST_CASE("Pixels show the geoms and depths that MuJoCo's own rays find") {
  Random random(7);
  for (int scene = 0; scene < 12; ++scene) {
    CAPTURE(scene);
    CHECK(agreement(*simulate(random_shapes(random, 25))) > .995);
  }
}

TEST_CASE("Thousands of shapes are drawn correctly") {
  Random random(8);
  const auto physics = simulate(random_shapes(random, 3000));
  CHECK(agreement(*physics) > .98);
  const auto picture = draw(*physics, {});
  CHECK(std::set<std::uint8_t>(picture.begin(), picture.end()).size() > 20);
}

TEST_CASE("Options list more objects than the default ones, and convex hulls are refused") {
  std::string geoms;
  for (int i = 0; i < 50; ++i)
    geoms += std::string("<geom size='.1' pos='") + number(i) + "0 0'/>";
  const auto physics = simulate("<mujoco><worldbody>" + geoms + "</worldbody></mujoco>");
  caster::DrawList list(physics->model(), -1);
  mjvOption option;
  mjv_defaultOption(&option);
  option.frame = mjFRAME_GEOM;
  list.show(option);
  CHECK(list.update(physics->model(), physics->data()).ngeom == 50 + 3 * 50); // three axes each
  option.flags[mjVIS_CONVEXHULL] = 1;
  CHECK_THROWS_WITH_AS(list.show(option), doctest::Contains("mjVIS_CONVEXHULL"),
                       std::invalid_argument);
  CHECK(list.update(physics->model(), physics->data()).ngeom == 50 + 3 * 50);
}

TEST_CASE("Pictures of even and odd sizes show the same scene") {
  const auto physics = simulate(kScene);
  for (const int side : {1, 2, 3, 5, 17, 85}) {
    CAPTURE(side);
    const auto picture =
        draw(*physics, {.height = side, .width = side, .layout = PixelLayout::channels_last});
    CHECK(brightness(picture, side, side / 2, side / 2) > 100); // the ball
  }
  Random random(7);
  const auto shapes = simulate(random_shapes(random, 25));
  for (const int side : {62, 63, 64, 65}) {
    CAPTURE(side);
    CHECK(agreement(*shapes, side) > .99);
  }
  const auto wide = draw(*physics, {.height = 3, .width = 4096});
  CHECK(wide.size() == 3 * 3 * 4096);
}

TEST_CASE("A simulation's own colours, sizes, lights and cameras are drawn") {
  const auto physics = simulate(kScene);
  const CastOptions options{.layout = PixelLayout::channels_last};
  RayCaster caster(caster_model(physics->compiled()), options);
  std::vector<std::uint8_t> picture(caster.bytes());
  std::vector<std::vector<std::uint8_t>> seen;
  const auto is_new = [&] {
    physics->forward();
    caster.draw(physics->model(), physics->data(), picture);
    bool found = false;
    for (const auto& before : seen)
      found = found || before == picture;
    seen.push_back(picture);
    return !found;
  };
  CHECK(is_new());
  CHECK_FALSE(is_new());
  physics->own_float_array("geom_rgba")[4] = .1F;
  CHECK(is_new());
  physics->own_array("geom_size")[0] = 1;
  CHECK(is_new());
  physics->own_float_array("light_diffuse")[0] = .1F;
  CHECK(is_new());
  physics->own_array("cam_pos")[2] = 2;
  CHECK(is_new());
  physics->own_array("cam_fovy")[0] = 30;
  CHECK(is_new());
  physics->own_array("light_pos")[0] = 1;
  CHECK(is_new());
}

TEST_CASE("A body whose position is not finite is not drawn, and other objects are unchanged") {
  const auto physics = simulate(kScene);
  constexpr int kSide = 64;
  RayCaster caster(caster_model(physics->compiled()), {.height = kSide, .width = kSide});
  std::vector<std::int32_t> before(2 * kSide * kSide);
  std::vector<std::int32_t> after(before.size());
  caster.draw_segmentation(physics->model(), physics->data(), before);
  physics->data().geom_xpos[3] = std::numeric_limits<double>::quiet_NaN();
  caster.draw_segmentation(physics->model(), physics->data(), after);
  std::vector<std::uint8_t> picture(caster.bytes());
  caster.draw(physics->model(), physics->data(), picture);
  bool was_seen = false;
  for (std::size_t i = 0; i < before.size(); i += 2) {
    was_seen = was_seen || before[i] == 1;
    REQUIRE(after[i] != 1);
    if (before[i] != 1)
      REQUIRE(after[i] == before[i]);
  }
  CHECK(was_seen);
}

TEST_CASE("A scene without lights has ambient light, and an empty scene is black") {
  const auto dark = simulate("<mujoco><visual><headlight active='0'/></visual><worldbody>"
                             "<camera pos='0 0 3'/><geom size='1' rgba='1 1 1 1'/>"
                             "</worldbody></mujoco>");
  const auto picture = draw(*dark, {.layout = PixelLayout::channels_last});
  CHECK(brightness(picture, 84, 42, 42) > 100);
  CHECK(brightness(picture, 84, 42, 42) < 300);
  const auto empty = simulate("<mujoco><worldbody><camera/></worldbody></mujoco>");
  for (const std::uint8_t value : draw(*empty, {}))
    REQUIRE(value == 0);
}

TEST_CASE("Casters on several threads share a model and draw equal pictures") {
  const auto physics = simulate(kScene);
  const auto expected = draw(*physics, {});
  std::vector<std::vector<std::uint8_t>> pictures(4);
  {
    std::vector<std::jthread> threads;
    for (auto& picture : pictures)
      threads.emplace_back([&] {
        Physics own(physics->compiled());
        own.reset();
        picture = draw(own, {});
      });
  }
  for (const auto& picture : pictures)
    CHECK((picture == expected));
}

TEST_CASE("A mesh of a few millimetres casts a shadow where it touches the floor, as a box does") {
  const auto picture_of = [](const std::string& geom) {
    return draw(*simulate(R"(<mujoco><asset><mesh name="cube" scale=".003 .003 .003"
      vertex="-1 -1 -1  1 -1 -1  -1 1 -1  1 1 -1  -1 -1 1  1 -1 1  -1 1 1  1 1 1"/></asset>
      <worldbody><light directional="true" dir="1 0 -1"/><camera pos="0 0 .07"/>
      <geom type="plane" size=".5 .5 .1"/>)"
                          + geom + "</worldbody></mujoco>"),
                {.layout = PixelLayout::channels_last});
  };
  const auto mesh = picture_of(R"(<geom type="mesh" mesh="cube" pos="0 0 .003"/>)");
  const auto box = picture_of(R"(<geom type="box" size=".003 .003 .003" pos="0 0 .003"/>)");
  const auto bare = picture_of("");
  const auto differing = [&box](const std::vector<std::uint8_t>& other) { // pixels
    int count = 0;
    for (std::size_t i = 0; i < box.size(); i += 3)
      count += std::abs(box[i] - other[i]) > 40 ? 1 : 0;
    return count;
  };
  CHECK(differing(bare) > 50); // the shadow has about 8 by 8 pixels
  CHECK(differing(mesh) < 10);
}

TEST_CASE("Effects change the picture and darken it with shadows") {
  const auto physics = simulate(kScene);
  const auto with = draw(*physics, {.height = 120, .width = 120});
  const auto without = draw(*physics, {.height = 120, .width = 120, .effects = false});
  CHECK((with != without));
  double with_sum = 0;
  double without_sum = 0;
  for (std::size_t i = 0; i < with.size(); ++i) {
    with_sum += with[i];
    without_sum += without[i];
  }
  CHECK(with_sum < without_sum); // shadows
}
