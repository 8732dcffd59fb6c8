#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "env/caster/skin.hpp"
#include "env/compiled_model.hpp"
#include "env/physics.hpp"
#include "tests/env/caster/shapes_kernels.hpp"

using namespace troupe::env;
using namespace troupe::env::caster;
using test::Hit;
using test::Rays;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Triangles without a model.
struct Soup {
  std::vector<float> vertices; // [n, 4]
  std::vector<BvhTriangle> triangles;
  std::vector<BvhNode> nodes;
  std::vector<float> normals;
  std::vector<std::int32_t> corners;

  void add(const std::array<std::array<float, 3>, 3>& points) {
    const auto first = static_cast<std::int32_t>(vertices.size() / 4);
    for (const auto& point : points)
      vertices.insert(vertices.end(), {point[0], point[1], point[2], 0});
    triangles.push_back(
        {{first, first + 1, first + 2}, static_cast<std::int32_t>(triangles.size())});
  }

  MeshView build() {
    nodes = build_bvh(triangles, vertices);
    normals.assign(vertices.size(), 0.0F);
    for (std::size_t i = 0; i < normals.size(); i += 4)
      normals[i + 2] = 1;
    for (const BvhTriangle& triangle : triangles)
      corners.insert(corners.end(),
                     {triangle.corner[0], triangle.corner[1], triangle.corner[2], 0});
    MeshView view;
    view.nodes = nodes.empty() ? nullptr : nodes.data();
    view.triangles = triangles.data();
    view.vertices = vertices.data();
    view.normals = normals.data();
    view.normal_corners = corners.data();
    return view;
  }
};

using Random = std::mt19937;

float uniform(Random& random, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random);
}

std::array<float, 3> point(Random& random, float size) {
  return {uniform(random, -size, size), uniform(random, -size, size), uniform(random, -size, size)};
}

Rays random_rays(Random& random, std::size_t count) {
  Rays rays;
  for (std::size_t i = 0; i < count; ++i) {
    rays.from.push_back(point(random, 3));
    const auto to = point(random, 1);
    rays.along.push_back(
        {to[0] - rays.from[i][0], to[1] - rays.from[i][1], to[2] - rays.from[i][2]});
  }
  rays.along[0] = {0, 0, -1}; // along the axes, too
  rays.along[1] = {0, 1, 0};
  return rays;
}

/// An independent reference in double precision: intersects the plane, then compares areas. `sure`
/// is false near an edge.
struct Plain {
  double t = -1;
  bool sure = true;
  bool front = false;
};

Plain plain_hit(const Soup& soup, const BvhTriangle& triangle, const Rays& rays, std::size_t ray) {
  using V = std::array<double, 3>;
  const auto vertex = [&](int k) {
    const float* at = soup.vertices.data() + 4 * triangle.corner[k];
    return V{at[0], at[1], at[2]};
  };
  const auto minus = [](const V& a, const V& b) {
    return V{a[0] - b[0], a[1] - b[1], a[2] - b[2]};
  };
  const auto times = [](const V& a, const V& b) {
    return V{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  };
  const auto dot = [](const V& a, const V& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
  const V a = vertex(0);
  const V b = vertex(1);
  const V c = vertex(2);
  const V n = times(minus(b, a), minus(c, a));
  const V o{rays.from[ray][0], rays.from[ray][1], rays.from[ray][2]};
  const V d{rays.along[ray][0], rays.along[ray][1], rays.along[ray][2]};
  const double slant = dot(n, d);
  if (dot(n, n) < 1e-14 || std::abs(slant) < 1e-6 * std::sqrt(dot(n, n) * dot(d, d)))
    return {-1, dot(n, n) == 0, false};
  const double t = dot(n, minus(a, o)) / slant;
  const V p{o[0] + t * d[0], o[1] + t * d[1], o[2] + t * d[2]};
  const double inside =
      std::min({dot(times(minus(b, a), minus(p, a)), n), dot(times(minus(c, b), minus(p, b)), n),
                dot(times(minus(a, c), minus(p, c)), n)})
      / dot(n, n);
  if (std::abs(inside) < 1e-3)
    return {-1, false, false};
  return {inside > 0 ? t : -1, true, slant < 0};
}

} // namespace

TEST_CASE("Rays hit the same triangle as an exhaustive search") {
  Random random(1);
  Soup soup;
  for (int i = 0; i < 400; ++i) {
    const auto at = point(random, 1);
    std::array<std::array<float, 3>, 3> corners;
    for (auto& corner : corners) {
      const auto off = point(random, .3F);
      corner = {at[0] + off[0], at[1] + off[1], at[2] + off[2]};
    }
    soup.add(corners);
  }
  const MeshView view = soup.build();
  const Rays rays = random_rays(random, 1600);
  const std::vector<Hit> hits = test::cast_mesh(view, rays);
  int met = 0;
  for (std::size_t i = 0; i < rays.from.size(); ++i) {
    double nearest = 1e30;
    bool sure = true;
    bool between = false;
    for (const BvhTriangle& triangle : soup.triangles) {
      const Plain plain = plain_hit(soup, triangle, rays, i);
      sure = sure && plain.sure;
      if (plain.t > 0 && plain.front)
        nearest = std::min(nearest, plain.t);
      between = between || (plain.t > 0 && plain.t < 1);
    }
    if (!sure)
      continue;
    INFO("ray ", i);
    CHECK((hits[i].t > 0) == (nearest < 1e30));
    CHECK(hits[i].between == between);
    if (hits[i].t > 0) {
      ++met;
      CHECK(hits[i].t == doctest::Approx(nearest).epsilon(1e-3));
    }
  }
  CHECK(met > 500);
}

TEST_CASE("Every vector width hits the same triangles at the same points") {
  Random random(2);
  Soup soup;
  for (int i = 0; i < 300; ++i)
    soup.add({point(random, 1), point(random, 1), point(random, 1)});
  const MeshView view = soup.build();
  const Rays rays = random_rays(random, 333);
  const std::vector<Hit> expected = test::cast_mesh_singly(view, rays);
  for (const std::int64_t target : test::targets()) {
    INFO("target ", target);
    test::use_target(target);
    CHECK(test::cast_mesh(view, rays) == expected);
  }
  test::use_target(0);
}

TEST_CASE("Degenerate triangles and coordinates that are not finite give finite distances") {
  Random random(3);
  for (int round = 0; round < 40; ++round) {
    Soup soup;
    const int count = round % 8 == 0 ? 0 : round * 5;
    for (int i = 0; i < count; ++i) {
      std::array<std::array<float, 3>, 3> corners{point(random, 1), point(random, 1),
                                                  point(random, 1)};
      switch (static_cast<int>(uniform(random, 0, 8))) {
      case 0:
        corners[1] = corners[0];
        break;
      case 1:
        corners[1] = corners[2] = corners[0];
        break;
      case 2:
        corners[2] = {kNan, 0, 1};
        break;
      case 3:
        corners[0][1] = kInfinity;
        break;
      case 4:
        corners = {{{1e30F, 0, 0}, {0, 1e30F, 0}, {0, 0, 1e30F}}};
        break;
      default:
        break;
      }
      soup.add(corners);
    }
    Rays rays = random_rays(random, 64);
    rays.along[5] = {0, 0, 0};
    rays.along[6] = {kNan, 1, 0};
    rays.from[7] = {kInfinity, 0, 0};
    for (const Hit& hit : test::cast_mesh(soup.build(), rays)) {
      CHECK(std::isfinite(hit.t));
      CHECK(hit.triangle < static_cast<std::int32_t>(soup.triangles.size()));
    }
  }
}

TEST_CASE("Many coincident triangles make a tree of bounded depth, and a ray hits them") {
  Soup soup;
  for (int i = 0; i < 3000; ++i)
    soup.add({{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}});
  const MeshView view = soup.build();
  std::vector<int> depths(soup.nodes.size(), 1); // children come after their parents
  for (std::size_t i = 0; i < soup.nodes.size(); ++i)
    if (const BvhNode& node = soup.nodes[i]; node.count == 0)
      for (const std::int32_t child : {node.first, node.first + 1})
        depths.at(static_cast<std::size_t>(child)) = depths[i] + 1;
  CHECK(*std::max_element(depths.begin(), depths.end()) <= kBvhDepth);
  Rays rays{{{.2F, .2F, 1}}, {{0, 0, -1}}};
  CHECK(test::cast_mesh(view, rays)[0].t == doctest::Approx(1));
}

namespace {

const char* const kMeshes = R"(
  <mujoco><asset>
    <mesh name="plain" vertex="-1 -1 -1  1 -1 -1  -1 1 -1  1 1 -1  -1 -1 1  1 -1 1  -1 1 1  1 1 1"/>
    <mesh name="smooth" smoothnormal="true"
      vertex="-1 -1 -1  1 -1 -1  -1 1 -1  1 1 -1  -1 -1 1  1 -1 1  -1 1 1  1 1 1"/>
  </asset><worldbody>
    <geom type="mesh" mesh="plain"/><geom type="mesh" mesh="smooth"/>
  </worldbody></mujoco>)";

} // namespace

TEST_CASE("Corners sharper than MuJoCo's smoothing limit have the normal of their face") {
  const auto compiled = compile_model("meshes", kMeshes);
  Random random(4);
  const Rays rays = random_rays(random, 400);
  for (int mesh = 0; mesh < 2; ++mesh) {
    const Mesh box(compiled->get(), mesh);
    CHECK(box.triangles() == 12);
    int met = 0;
    for (const Hit& hit : test::cast_mesh(box.view(), rays)) {
      if (hit.t < 0)
        continue;
      ++met;
      const float largest =
          std::max({std::abs(hit.normal[0]), std::abs(hit.normal[1]), std::abs(hit.normal[2])});
      CHECK(largest == doctest::Approx(1)); // cosine of vertex and face normals is .58
    }
    CHECK(met > 200);
  }
  const Meshes meshes(compiled->get());
  CHECK(meshes.view(0).nodes != nullptr);
  CHECK(meshes.view(-1).nodes == nullptr);
  CHECK(meshes.view(2).nodes == nullptr);
}

namespace {

/// A skin of two bones, inflated by `inflate` metres.
std::string skin_xml(const std::string& inflate) {
  return R"(
  <mujoco><worldbody>
    <body name="a" pos="1 2 3"><joint type="ball"/><geom size=".1"/>
      <body name="b" pos=".5 0 0"><joint type="ball"/><geom size=".1"/></body></body>
  </worldbody><deformable>
    <skin name="s" inflate=")"
         + inflate + R"(" vertex="0 0 0  1 0 0  1 1 0  0 1 0  .5 .5 1"
      face="0 1 4  1 2 4  2 3 4  3 0 4  0 3 1  1 3 2">
      <bone body="a" bindpos="0 .1 0" bindquat=".9 .1 0 0" vertid="0 1 4" vertweight="1 .5 .25"/>
      <bone body="b" bindpos=".6 0 0" bindquat="1 0 0 0" vertid="1 2 3 4" vertweight=".5 1 1 .75"/>
    </skin>
  </deformable></mujoco>)";
}

/// How far the skin is from where MuJoCo puts it: largest error of positions and of normals.
std::array<double, 2> skin_errors(Physics& physics, Skin& skin) {
  mjvScene scene;
  mjvOption option;
  mjvCamera camera;
  mjv_defaultScene(&scene);
  mjv_defaultOption(&option);
  mjv_defaultCamera(&camera);
  mjv_makeScene(&physics.model(), &scene, 2000);
  mjv_updateScene(&physics.model(), &physics.data(), &option, nullptr, &camera, mjCAT_ALL, &scene);
  skin.pose(physics.data());
  std::array<double, 2> errors{};
  for (std::size_t i = 0; i < skin.vertices().size() / 4; ++i)
    for (std::size_t k = 0; k < 3; ++k) {
      const double at = skin.vertices()[4 * i + k] + skin.origin()[k];
      errors[0] = std::max(errors[0], std::abs(at - scene.skinvert[3 * i + k]));
      errors[1] = std::max(errors[1], std::abs(static_cast<double>(skin.normals()[4 * i + k])
                                               - static_cast<double>(scene.skinnormal[3 * i + k])));
    }
  mjv_freeScene(&scene);
  return errors;
}

void turn_joints(Physics& physics, unsigned seed) {
  Random random(seed);
  physics.reset();
  for (int i = 0; i < physics.model().nq; ++i)
    physics.data().qpos[i] += uniform(random, -.4F, .4F);
  physics.forward();
}

} // namespace

TEST_CASE("Skins move as in MuJoCo, inflated or not") {
  for (const char* inflate : {"0", ".07"}) {
    Physics physics(compile_model("skin", skin_xml(inflate)));
    Skin skin(std::make_shared<const SkinModel>(physics.model(), 0));
    for (unsigned seed = 0; seed < 5; ++seed) {
      turn_joints(physics, seed);
      const auto errors = skin_errors(physics, skin);
      CHECK(errors[0] < 1e-5);
      CHECK(errors[1] < 1e-4);
    }
  }
}

TEST_CASE("The dog's skin moves as in MuJoCo and stays within the bounds of its tree") {
  Physics physics(load_model("", "dog.xml"));
  Skin skin(std::make_shared<const SkinModel>(physics.model(), 0));
  for (unsigned seed = 0; seed < 2; ++seed) {
    turn_joints(physics, seed);
    const auto errors = skin_errors(physics, skin);
    CHECK(errors[0] < 1e-5);
    CHECK(errors[1] < 2e-2); // of faces with almost no area
    const BvhNode& bounds = skin.view().nodes[0];
    for (std::size_t i = 0; i < skin.vertices().size(); i += 4)
      for (std::size_t k = 0; k < 3; ++k) {
        REQUIRE(skin.vertices()[i + k] >= bounds.low[k]);
        REQUIRE(skin.vertices()[i + k] <= bounds.high[k]);
      }
  }
}

TEST_CASE("Rays do not hit a skin whose bodies have poses that are not finite") {
  Physics physics(compile_model("skin", skin_xml("0")));
  Skin skin(std::make_shared<const SkinModel>(physics.model(), 0));
  physics.forward();
  physics.data().xpos[4] = kNan;
  physics.data().xquat[8] = kNan;
  skin.pose(physics.data());
  Random random(5);
  for (const Hit& hit : test::cast_mesh(skin.view(), random_rays(random, 64)))
    CHECK(hit.t == -1);
}
