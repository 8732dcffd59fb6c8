#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "env/caster/ray_query.hpp"
#include "env/physics.hpp"
#include "env/random.hpp"

using namespace troupe::env;

namespace {

std::unique_ptr<Physics> simulate(const std::string& xml) {
  auto physics = std::make_unique<Physics>(compile_model("scene", xml));
  physics->reset();
  return physics;
}

/// Solids of every kind in all orientations, some enclosing others, in groups 0 to 2.
std::string crowd(Random& random, int count) {
  const auto numbers = [&](int values, double low, double high) {
    std::string out;
    for (int k = 0; k < values; ++k)
      out += std::to_string(random.uniform(low, high)) + " ";
    return out;
  };
  std::string xml =
      "<mujoco><asset>"
      "<mesh name='tetrahedron' vertex='0 0 0  1 0 0  0 1 0  0 0 1'/>"
      "<hfield name='hills' nrow='17' ncol='23' size='3 2 .8 .3' elevation='"
      + numbers(17 * 23, 0, 1)
      + "'/><material name='clear' rgba='1 1 1 0'/></asset><worldbody>"
        "<geom type='plane' size='0 0 1' pos='0 0 -3'/>"
        "<geom type='plane' size='2 3 1' pos='5 0 0' euler='0 -70 10'/>"
        "<geom type='hfield' hfield='hills' pos='0 0 -2.5' euler='5 10 20' group='2'/>"
        "<geom type='sphere' size='2' rgba='1 1 1 0'/>"
        "<geom type='sphere' size='2' material='clear'/>";
  const std::array<std::pair<const char*, int>, 6> kinds{
      {{"sphere", 1}, {"capsule", 2}, {"ellipsoid", 3}, {"cylinder", 2}, {"box", 3}, {"mesh", 0}}};
  for (int i = 0; i < count; ++i) {
    const auto& [kind, sizes] = kinds[static_cast<std::size_t>(i) % kinds.size()];
    xml += "<body pos='" + numbers(3, -4, 4) + "' euler='" + numbers(3, 0, 180)
           + "'><freejoint/>"
             "<geom mass='1' type='"
           + kind + "' group='" + std::to_string(i % 3) + "' ";
    xml += sizes > 0 ? "size='" + numbers(sizes, .1, .9) + "'/>" : "mesh='tetrahedron'/>";
    xml += "</body>";
  }
  return xml + "</worldbody></mujoco>";
}

struct Found {
  std::vector<float> distances;
  std::vector<std::int32_t> geoms;
};

Found cast(const Physics& physics, const std::vector<double>& origins,
           const std::vector<double>& directions, const RayQueryOptions& options) {
  RayQuery query(caster_model(physics.compiled()));
  query.update(physics.model(), physics.data(), options);
  Found found{std::vector<float>(origins.size() / 3, 77),
              std::vector<std::int32_t>(origins.size() / 3, 77)};
  query.cast(origins, directions, found.distances, found.geoms);
  return found;
}

/// mj_ray also hits a floor inside height fields.
bool in_field(const Physics& physics, const double* point) {
  constexpr int kField = 2; // index of the geom
  const mjtNum* place = physics.data().geom_xpos + 3 * kField;
  const mjtNum off[3] = {point[0] - place[0], point[1] - place[1], point[2] - place[2]};
  mjtNum local[3];
  mju_mulMatTVec3(local, physics.data().geom_xmat + 9 * kField, off);
  return std::abs(local[0]) <= 3 && std::abs(local[1]) <= 2 && local[2] >= -.3 && local[2] <= .8;
}

} // namespace

TEST_CASE("Rays hit the same geoms as mj_ray at the same distances, from outside and inside") {
  Random random(3);
  const auto physics = simulate(crowd(random, 60));
  std::vector<double> origins;
  std::vector<double> directions;
  constexpr std::size_t kRays = 3001; // not a multiple of the packet size
  for (std::size_t i = 0; i < 3 * kRays; ++i) {
    origins.push_back(random.uniform(-4, 4));
    directions.push_back(random.uniform(-2, 2));
  }
  for (const RayQueryOptions& options :
       {RayQueryOptions{}, RayQueryOptions{.groups = {false, true, false, true, true, true}},
        RayQueryOptions{.statics = false}, RayQueryOptions{.exclude_body = 3},
        RayQueryOptions{.cutoff = .8F}}) {
    const Found found = cast(*physics, origins, directions, options);
    std::array<mjtByte, mjNGROUP> groups{};
    for (std::size_t k = 0; k < groups.size(); ++k)
      groups[k] = options.groups[k] ? 1 : 0;
    int hits = 0;
    int different = 0;
    for (std::size_t i = 0; i < kRays; ++i) {
      if (in_field(*physics, &origins[3 * i]))
        continue;
      int geom = -1;
      mjtNum distance =
          mj_ray(&physics->model(), &physics->data(), &origins[3 * i], &directions[3 * i],
                 groups.data(), options.statics ? 1 : 0, options.exclude_body, &geom, nullptr);
      if (distance > options.cutoff)
        distance = geom = -1;
      hits += geom >= 0 ? 1 : 0;
      const bool close = std::abs(found.distances[i] - distance) < 1e-4 * (1 + std::abs(distance));
      different += found.geoms[i] == geom && close ? 0 : 1;
    }
    CAPTURE(options.statics);
    CAPTURE(options.exclude_body);
    CHECK(hits > static_cast<int>(kRays) / 5);
    CHECK(different <= 3); // along edges
  }
}

TEST_CASE("Rays are as exact in a world far from its origin as near it") {
  Random random(4);
  std::string xml = crowd(random, 30);
  const auto near = simulate(xml);
  std::size_t at = xml.find("<worldbody>");
  xml.replace(at, 11, "<worldbody><frame pos='100000 200000 0'>");
  at = xml.find("</worldbody>");
  xml.replace(at, 12, "</frame></worldbody>");
  const auto far = simulate(xml);
  std::vector<double> here;
  std::vector<double> there;
  std::vector<double> directions;
  for (int i = 0; i < 1500; ++i) {
    here.push_back(random.uniform(-4, 4));
    there.push_back(here.back() + (i % 3 == 0 ? 100000 : i % 3 == 1 ? 200000 : 0));
    directions.push_back(random.uniform(-1, 1));
  }
  const Found a = cast(*near, here, directions, {});
  const Found b = cast(*far, there, directions, {});
  int different = 0;
  for (std::size_t i = 0; i < a.geoms.size(); ++i)
    different +=
        a.geoms[i] == b.geoms[i] && std::abs(a.distances[i] - b.distances[i]) < 1e-3 ? 0 : 1;
  CHECK(different <= 2);
}

TEST_CASE("Invalid rays hit nothing, and the error about an invalid argument names it") {
  const auto physics = simulate("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>");
  const double bad = std::numeric_limits<double>::quiet_NaN();
  const double endless = std::numeric_limits<double>::infinity();
  const Found found = cast(*physics, {0, 0, 5, bad, 0, 5, 0, endless, 5, 0, 0, 5, 0, 0, 5},
                           {0, 0, -2, 0, 0, -1, 0, 0, -1, 0, 0, 0, bad, 0, -1}, {});
  CHECK(found.distances == std::vector<float>{2, -1, -1, -1, -1});
  CHECK(found.geoms == std::vector<std::int32_t>{0, -1, -1, -1, -1});
  CHECK_THROWS_AS(RayQuery(nullptr), std::invalid_argument);
  CHECK_THROWS_WITH_AS(cast(*physics, {0, 0, 5}, {0, 0, -1}, {.exclude_body = 1}),
                       doctest::Contains("exclude_body is 1; it must be from 0 to 0"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(cast(*physics, {0, 0, 5}, {0, 0, -1}, {.cutoff = 0}),
                       doctest::Contains("cutoff is 0"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(cast(*physics, {0, 0, 5}, {0, 0}, {}), doctest::Contains("2 of directions"),
                       std::invalid_argument);
}
