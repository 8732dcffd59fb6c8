#include <doctest/doctest.h>

#include "env/make/make.hpp"

using namespace troupe::env;

namespace {

using Picture = std::vector<std::byte>;

std::unique_ptr<Environment> make_escape() {
  return make_environment(
      {.task = "quadruped_escape", .pixels = PixelOptions{.camera = "global", .effects = false}});
}

Picture first_picture(Environment& environment, std::uint64_t seed) {
  Picture picture(environment.spec().observation_bytes());
  environment.reset(seed, picture);
  return picture;
}

} // namespace

TEST_CASE("Each environment draws the terrain of its own episode") {
  std::vector<Picture> alone;
  for (const std::uint64_t seed : {1, 2})
    alone.push_back(first_picture(*make_escape(), seed));
  CHECK(alone[0] != alone[1]);

  const auto a = make_escape(); // both share one OpenGL context with its textures and shapes
  const auto b = make_escape();
  for (int round = 0; round < 2; ++round) {
    CHECK(first_picture(*a, 1) == alone[0]);
    CHECK(first_picture(*b, 2) == alone[1]);
  }
}

TEST_CASE("A saved episode continues on its own terrain") {
  const auto a = make_escape();
  const Picture first = first_picture(*a, 5);
  std::vector<std::byte> state;
  a->save_state(state);
  const auto b = make_escape(); // has not generated a terrain yet
  b->load_state(state);
  const std::vector<double> action(a->spec().action.size(), .2);
  Picture from_a(first.size());
  Picture from_b(first.size());
  for (int i = 0; i < 5; ++i) {
    a->step(action, from_a);
    b->step(action, from_b);
    CHECK(from_a == from_b);
  }
}
