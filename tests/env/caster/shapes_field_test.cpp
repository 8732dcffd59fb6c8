#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "env/compiled_model.hpp"
#include "env/physics.hpp"
#include "tests/env/caster/shapes_kernels.hpp"

using namespace troupe::env;
using namespace troupe::env::caster;
using test::Hit;
using test::Rays;

namespace {

using Random = std::mt19937;

double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

Physics field_physics(int rows, int columns) {
  std::ostringstream xml;
  xml << "<mujoco><asset><hfield name='f' nrow='" << rows << "' ncol='" << columns
      << "' size='3 2 1.5 .5'/></asset><worldbody><geom type='hfield' hfield='f'/>"
      << "</worldbody></mujoco>";
  return Physics(compile_model("field", xml.str()));
}

void fill(Physics& physics, unsigned seed) {
  Random random(seed);
  for (float& height : physics.own_float_array("hfield_data"))
    height = static_cast<float>(uniform(random, 0, 1));
}

Rays random_rays(unsigned seed, std::size_t count) {
  Random random(seed);
  Rays rays;
  for (std::size_t i = 0; i < count; ++i) {
    std::array<float, 3> from{};
    std::array<float, 3> to{};
    for (std::size_t k = 0; k < 3; ++k) {
      from[k] = static_cast<float>(uniform(random, -6, 6));
      to[k] = static_cast<float>(uniform(random, -1, 1)) * (k == 0 ? 3.0F : k == 1 ? 2.0F : .8F);
    }
    rays.from.push_back(from);
    rays.along.push_back({to[0] - from[0], to[1] - from[1], to[2] - from[2]});
  }
  return rays;
}

using Point = std::array<double, 3>;
using Triangle = std::array<Point, 3>;

/// The triangles that MuJoCo passes to OpenGL: two per cell, the walls and a floor; corners are
/// counterclockwise seen from outside.
std::vector<Triangle> all_triangles(const mjModel& model) {
  const int rows = model.hfield_nrow[0];
  const int columns = model.hfield_ncol[0];
  const mjtNum* size = model.hfield_size;
  const auto at = [&](int r, int c) {
    return Point{size[0] * (2.0 * c / (columns - 1) - 1), size[1] * (2.0 * r / (rows - 1) - 1),
                 model.hfield_data[r * columns + c] * size[2]};
  };
  const auto low = [&](Point p) { return Point{p[0], p[1], -size[3]}; };
  std::vector<Triangle> triangles;
  const auto add_wall = [&](const Point& p, const Point& q) { // outside is to the right of p to q
    triangles.push_back({low(p), low(q), q});
    triangles.push_back({low(p), q, p});
  };
  for (int r = 0; r + 1 < rows; ++r)
    for (int c = 0; c + 1 < columns; ++c) {
      triangles.push_back({at(r + 1, c), at(r, c), at(r + 1, c + 1)});
      triangles.push_back({at(r, c), at(r, c + 1), at(r + 1, c + 1)});
    }
  for (int c = 0; c + 1 < columns; ++c) {
    add_wall(at(0, c), at(0, c + 1));
    add_wall(at(rows - 1, c + 1), at(rows - 1, c));
  }
  for (int r = 0; r + 1 < rows; ++r) {
    add_wall(at(r + 1, 0), at(r, 0));
    add_wall(at(r, columns - 1), at(r + 1, columns - 1));
  }
  triangles.push_back({low(at(0, 0)), low(at(rows - 1, 0)), low(at(rows - 1, columns - 1))});
  triangles.push_back({low(at(0, 0)), low(at(rows - 1, columns - 1)), low(at(0, columns - 1))});
  return triangles;
}

struct Plain {
  double t = -1;
  bool sure = true;
  bool front = false;
  Point normal{};
};

Plain plain_hit(const Triangle& triangle, const Rays& rays, std::size_t ray) {
  const auto minus = [](const Point& a, const Point& b) {
    return Point{a[0] - b[0], a[1] - b[1], a[2] - b[2]};
  };
  const auto times = [](const Point& a, const Point& b) {
    return Point{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  };
  const auto dot = [](const Point& a, const Point& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  };
  const auto& [a, b, c] = triangle;
  const Point n = times(minus(b, a), minus(c, a));
  const double area = std::sqrt(dot(n, n));
  const Point o{rays.from[ray][0], rays.from[ray][1], rays.from[ray][2]};
  const Point d{rays.along[ray][0], rays.along[ray][1], rays.along[ray][2]};
  const double slant = dot(n, d);
  if (area < 1e-12)
    return {};
  if (std::abs(slant) < 1e-4 * area)
    return {-1, false, false, {}};
  const double t = dot(n, minus(a, o)) / slant;
  const Point p{o[0] + t * d[0], o[1] + t * d[1], o[2] + t * d[2]};
  const double inside =
      std::min({dot(times(minus(b, a), minus(p, a)), n), dot(times(minus(c, b), minus(p, b)), n),
                dot(times(minus(a, c), minus(p, c)), n)})
      / (area * area);
  if (std::abs(inside) < 2e-3)
    return {-1, false, false, {}};
  return {inside > 0 ? t : -1, true, slant < 0, {n[0] / area, n[1] / area, n[2] / area}};
}

} // namespace

TEST_CASE("Rays hit a height field where they hit the triangles that MuJoCo draws") {
  for (const auto& [rows, columns] : {std::pair(2, 2), {9, 6}, {17, 33}}) {
    Physics physics = field_physics(rows, columns);
    fill(physics, 3);
    const HeightField field(physics.model(), 0);
    const std::vector<Triangle> triangles = all_triangles(physics.model());
    const Rays rays = random_rays(7, 800);
    const std::vector<Hit> hits = test::cast_field(field.view(), rays);
    int met = 0;
    for (std::size_t i = 0; i < rays.from.size(); ++i) {
      Plain nearest{1e30, true, true, {}};
      bool sure = true;
      bool between = false;
      for (const Triangle& triangle : triangles) {
        const Plain plain = plain_hit(triangle, rays, i);
        sure = sure && plain.sure;
        if (plain.t > 0 && plain.front && plain.t < nearest.t)
          nearest = plain;
        between = between || (plain.t > 0 && plain.t < 1);
      }
      if (!sure)
        continue;
      INFO(rows, "x", columns, " ray ", i);
      CHECK((hits[i].t > 0) == (nearest.t < 1e30));
      CHECK(hits[i].between == between);
      if (hits[i].t < 0 || nearest.t > 1e29)
        continue;
      ++met;
      CHECK(hits[i].t == doctest::Approx(nearest.t).epsilon(1e-3));
      for (std::size_t k = 0; k < 3; ++k)
        CHECK(hits[i].normal[k] == doctest::Approx(nearest.normal[k]).epsilon(1e-3));
    }
    CHECK(met > 150);
  }
}

TEST_CASE("Every vector width hits the height field at the same points") {
  Physics physics = field_physics(20, 31);
  fill(physics, 4);
  const HeightField field(physics.model(), 0);
  const Rays rays = random_rays(8, 333);
  const std::vector<Hit> expected = test::cast_field_singly(field.view(), rays);
  for (const std::int64_t target : test::targets()) {
    INFO("target ", target);
    test::use_target(target);
    CHECK(test::cast_field(field.view(), rays) == expected);
  }
  test::use_target(0);
}

TEST_CASE("A height field follows the heights of the model when it is updated") {
  Physics physics = field_physics(5, 5);
  HeightField field(physics.model(), 0);
  const Rays down{{{.1F, .2F, 9}}, {{0, 0, -1}}};
  CHECK(test::cast_field(field.view(), down)[0].t == doctest::Approx(9));
  for (float& height : physics.own_float_array("hfield_data"))
    height = 1;
  CHECK(test::cast_field(field.view(), down)[0].t == doctest::Approx(9));
  field.update(physics.model());
  CHECK(test::cast_field(field.view(), down)[0].t == doctest::Approx(7.5));
  CHECK(field.highest() == doctest::Approx(1.5));
}

TEST_CASE("Heights and rays that are not finite give finite distances") {
  Physics physics = field_physics(6, 7);
  fill(physics, 9);
  const auto heights = physics.own_float_array("hfield_data");
  heights[3] = std::numeric_limits<float>::quiet_NaN();
  heights[9] = std::numeric_limits<float>::infinity();
  heights[11] = -1e30F;
  HeightField field(physics.model(), 0);
  Rays rays = random_rays(10, 200);
  rays.along[0] = {0, 0, 0};
  rays.along[1] = {std::numeric_limits<float>::quiet_NaN(), 0, 1};
  rays.from[2] = {std::numeric_limits<float>::infinity(), 0, 1};
  for (const Hit& hit : test::cast_field(field.view(), rays))
    CHECK(std::isfinite(hit.t));
}
