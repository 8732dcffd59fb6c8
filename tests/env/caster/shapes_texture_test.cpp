#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <sstream>

#include "env/compiled_model.hpp"
#include "tests/env/caster/shapes_kernels.hpp"

using namespace troupe::env;
using namespace troupe::env::caster;

namespace {

using Place = std::array<float, 4>;
using Random = std::mt19937;

float uniform(Random& random, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random);
}

/// A model with one texture, whose bytes the test sets.
std::shared_ptr<const CompiledModel> textured(const char* type, int width, int height,
                                              const std::function<void(mjtByte*)>& paint) {
  std::ostringstream xml;
  xml << "<mujoco><asset><texture name='t' type='" << type << "' builtin='flat' width='" << width
      << "' height='" << height << "'/></asset></mujoco>";
  auto compiled = compile_model("texture", xml.str());
  paint(compiled->get().tex_data);
  return compiled;
}

/// One channel by definition: repeated, bilinear, texel centres at half-integers.
double bilinear(const mjtByte* bytes, int width, int height, double u, double v, int channel) {
  const double x = u * width - .5;
  const double y = v * height - .5;
  const auto texel = [&](double column, double row) {
    const int c = ((static_cast<int>(column) % width) + width) % width;
    const int r = ((static_cast<int>(row) % height) + height) % height;
    return static_cast<double>(bytes[3 * (r * width + c) + channel]);
  };
  const double fx = x - std::floor(x);
  const double fy = y - std::floor(y);
  const double top =
      texel(std::floor(x), std::floor(y)) * (1 - fx) + texel(std::floor(x) + 1, std::floor(y)) * fx;
  const double bottom = texel(std::floor(x), std::floor(y) + 1) * (1 - fx)
                        + texel(std::floor(x) + 1, std::floor(y) + 1) * fx;
  return (top * (1 - fy) + bottom * fy) / 255;
}

} // namespace

TEST_CASE("Level 0 is sampled bilinearly and repeats, with two colours and with many") {
  for (const int colours : {2, 256}) {
    Random random(1);
    const auto compiled = textured("2d", 7, 5, [&](mjtByte* bytes) {
      for (int i = 0; i < 35; ++i) {
        const bool second = uniform(random, 0, 1) > .5F;
        for (int c = 0; c < 3; ++c)
          bytes[3 * i + c] = static_cast<mjtByte>(
              colours == 2 ? (second ? 200 - 60 * c : 10 + 30 * c) : uniform(random, 0, 255));
      }
    });
    const Texture texture = make_textures(compiled->get())[0];
    CHECK(texture.two_colours == (colours == 2));
    CHECK(texture.levels == 3); // 7x5, 3x2, 1x1
    std::vector<Place> places;
    for (int i = 0; i < 300; ++i)
      places.push_back({uniform(random, -3, 3), uniform(random, -3, 3), -1, 0});
    places.push_back({-1e-9F, 1 - 1e-8F, -5, 0});
    const auto sampled = test::sample(texture, places);
    for (std::size_t i = 0; i < places.size(); ++i)
      for (int c = 0; c < 3; ++c)
        CHECK(sampled[i][static_cast<std::size_t>(c)]
              == doctest::Approx(bilinear(compiled->get().tex_data, 7, 5,
                                          static_cast<double>(places[i][0]),
                                          static_cast<double>(places[i][1]), c))
                     .epsilon(2e-3));
  }
}

TEST_CASE("The last level is the mean of the texture, a level between two mixes them, and higher "
          "levels are clamped to the last") {
  const auto compiled = textured("2d", 8, 8, [](mjtByte* bytes) {
    for (int i = 0; i < 64; ++i)
      for (int c = 0; c < 3; ++c)
        bytes[3 * i + c] = static_cast<mjtByte>(i % 8 < 4 ? 40 : 160 + c);
  });
  const Texture texture = make_textures(compiled->get())[0];
  const auto sampled = test::sample(texture, {{.25F, .5F, 0, 0},
                                              {.25F, .5F, 3, 0},
                                              {.25F, .5F, 99, 0},
                                              {.25F, .5F, 2, 0},
                                              {.25F, .5F, 2.25F, 0},
                                              {.25F, .5F, 2.5F, 0}});
  CHECK(sampled[0][0] == doctest::Approx(40 / 255.0));
  CHECK(sampled[1][0] == doctest::Approx(100 / 255.0).epsilon(.01));
  CHECK(sampled[2] == sampled[1]);
  CHECK(sampled[3][0] == doctest::Approx(40 / 255.0).epsilon(.01));
  CHECK(sampled[4][0] == doctest::Approx(55 / 255.0).epsilon(.01));
  CHECK(sampled[5][0] == doctest::Approx(70 / 255.0).epsilon(.01));
}

TEST_CASE("A cube texture has each face where OpenGL has it and no seam between faces") {
  const auto compiled = textured("cube", 16, 96, [](mjtByte* bytes) {
    for (int face = 0; face < 6; ++face)
      for (int i = 0; i < 256; ++i)
        for (int c = 0; c < 3; ++c)
          bytes[3 * (face * 256 + i) + c] = static_cast<mjtByte>(c == 0   ? 40 * face
                                                                 : c == 1 ? 16 * (i % 16)
                                                                          : 16 * (i / 16));
  });
  const Texture texture = make_textures(compiled->get())[0];
  REQUIRE(texture.cube);
  const std::vector<Place> middles{{1, 0, 0, 0},  {-1, 0, 0, 0}, {0, 1, 0, 0},
                                   {0, -1, 0, 0}, {0, 0, 1, 0},  {0, 0, -1, 0}};
  const auto seen = test::sample(texture, middles);
  for (std::size_t face = 0; face < 6; ++face)
    CHECK(seen[face][0] == doctest::Approx(40.0 * static_cast<double>(face) / 255));
  // On the +x face, across is -z and down is -y.
  CHECK(test::sample(texture, {{1, 0, -.5F, 0}})[0][1]
        > test::sample(texture, {{1, 0, .5F, 0}})[0][1]);
  CHECK(test::sample(texture, {{1, -.5F, 0, 0}})[0][2]
        > test::sample(texture, {{1, .5F, 0, 0}})[0][2]);

  Random random(2);
  for (int i = 0; i < 400; ++i) { // on both sides of an edge, at any level
    Place a{1, 1, uniform(random, -.95F, .95F), std::floor(uniform(random, 0, 4))};
    for (int turns = i % 3; turns > 0; --turns)
      a = {a[2], a[0], a[1], a[3]};
    for (std::size_t k = 0; k < 3; ++k)
      a[k] = uniform(random, 0, 1) > .5F ? a[k] : -a[k];
    Place b = a;
    std::size_t moved = 0;
    while (std::abs(a[moved]) < .99F)
      ++moved;
    a[moved] *= 1.0001F;
    b[moved] *= .9999F;
    const auto both = test::sample(texture, {a, b});
    for (std::size_t c = 0; c < 3; ++c)
      CHECK(std::abs(both[0][c] - both[1][c]) < .02F);
  }
}

TEST_CASE("Every vector width samples the same colours") {
  Random random(3);
  const auto paint = [&](int count) {
    return [&random, count](mjtByte* bytes) {
      for (int i = 0; i < 3 * count; ++i)
        bytes[i] = static_cast<mjtByte>(uniform(random, 0, 255));
    };
  };
  const auto flat = textured("2d", 13, 9, paint(13 * 9));
  const auto cube = textured("cube", 12, 72, paint(12 * 72));
  for (const auto* compiled : {flat.get(), cube.get()}) {
    const Texture texture = make_textures(compiled->get())[0];
    std::vector<Place> places;
    for (int i = 0; i < 333; ++i)
      places.push_back({uniform(random, -2, 2), uniform(random, -2, 2), uniform(random, -1, 6),
                        uniform(random, -1, 6)});
    test::use_target(test::targets().back());
    const auto expected = test::sample(texture, places);
    for (const std::int64_t target : test::targets()) {
      INFO("target ", target);
      test::use_target(target);
      CHECK(test::sample(texture, places) == expected);
    }
    test::use_target(0);
  }
}

TEST_CASE("Coordinates that are not finite give a valid colour") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto none = [](mjtByte*) {};
  const auto flat = textured("2d", 3, 1, none);
  const auto cube = textured("skybox", 4, 4, none); // one face for all six sides
  for (const auto* compiled : {flat.get(), cube.get()}) {
    const Texture texture = make_textures(compiled->get())[0];
    for (const auto& colour :
         test::sample(texture, {{kNan, 0, 0, kNan},
                                {0, kInfinity, kNan, 0},
                                {1e38F, -1e38F, kInfinity, kInfinity},
                                {0, 0, 0, 0},
                                {kInfinity, kInfinity, -kInfinity, -kInfinity}}))
      for (const float part : colour)
        CHECK((part >= 0 && part <= 1));
  }
  CHECK(find_sky(cube->get()) == 0);
  CHECK(find_sky(flat->get()) == -1);
}
