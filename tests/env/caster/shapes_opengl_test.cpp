#include <doctest/doctest.h>

#include "tests/env/render/two_renderers.hpp"

using namespace troupe::env;

namespace {

/// Materials with a flat and a cube texture, meshes with and without coordinates, a height field.
constexpr const char* kAssets = R"(
  <asset>
    <texture name="flat" type="2d" builtin="checker" mark="edge" width="37" height="50"
      rgb1=".9 .2 .1" rgb2=".2 .8 .4" markrgb="1 1 1"/>
    <texture name="cube" type="cube" builtin="gradient" mark="cross" width="40" height="40"
      rgb1=".1 .3 .9" rgb2=".9 .8 .2" markrgb="1 1 1"/>
    <material name="flat" texture="flat" texrepeat="3 2" specular="0"/>
    <material name="uniform" texture="flat" texrepeat="1 2" texuniform="true" specular="0"/>
    <material name="cube" texture="cube" specular="0"/>
    <material name="uniform_cube" texture="cube" texuniform="true" specular="0"/>
    <mesh name="plain" vertex="-1 -.6 -.8 1 -.6 -.8 -1 .6 -.8 1 .6 -.8 -1 -.6 .8 1 -.6 .8 0 0 1.2"/>
    <mesh name="mapped" vertex="-1 -1 0 1 -1 0 0 1 0 0 0 1" face="0 2 1 0 1 3 1 2 3 2 0 3"
      texcoord="0 0 1 0 .5 1 .5 .5"/>
    <hfield name="hills" nrow="4" ncol="5" size="1 .8 .6 .3"
      elevation="0 .2 .4 .2 0  .3 .9 .5 .6 .1  .2 .4 1 .3 .2  0 .1 .3 .2 0"/>
  </asset>)";

std::string scene(const std::string& geom, const std::string& more = "") {
  return std::string(R"(<mujoco><visual><headlight ambient=".3 .3 .3" diffuse=".6 .6 .6"
      specular="0 0 0"/></visual>)")
         + kAssets + R"(<worldbody><camera pos="1.6 -2.6 2.1" xyaxes=".85 .53 0 -.28 .45 .85"
         fovy="50"/>)"
         + geom + "</worldbody>" + more + "</mujoco>";
}

void check_alike(const std::string& xml, double similarity, double levels, double share_off) {
  const TwoRenderers both(xml);
  INFO(xml.substr(xml.find("<geom")));
  CHECK(both.similarity() > similarity);
  CHECK(both.difference() < levels);
  CHECK(both.share_off(3) < share_off);
}

} // namespace

TEST_CASE("Flat textures are mapped to every shape as in OpenGL") {
  for (const char* material : {"flat", "uniform"})
    for (const char* shape :
         {"type='plane' size='1 .7 .2'", "type='box' size='.9 .6 .7'", "type='sphere' size='.9'",
          "type='ellipsoid' size='.9 .6 .7'", "type='capsule' size='.5 .6'",
          "type='cylinder' size='.6 .7'", "type='mesh' mesh='plain'", "type='mesh' mesh='mapped'",
          "type='hfield' hfield='hills'"})
      check_alike(scene(std::string("<geom ") + shape + " material='" + material + "'/>"), .97, 1.5,
                  .06);
}

TEST_CASE("An infinite plane's texture matches OpenGL except for distant detail") {
  check_alike(scene("<geom type='plane' size='0 0 .2' material='flat'/>"), .975, 2.5, .25);
}

// A mesh that has texture coordinates and a cube texture shows whichever flat texture OpenGL bound
// last, so there is nothing to compare with.
TEST_CASE("Cube textures are mapped to every shape as in OpenGL") {
  for (const char* material : {"cube", "uniform_cube"})
    for (const char* shape : {"type='box' size='.9 .6 .7'", "type='sphere' size='.9'",
                              "type='ellipsoid' size='.9 .6 .7'", "type='capsule' size='.5 .6'",
                              "type='cylinder' size='.6 .7'", "type='mesh' mesh='plain'",
                              "type='hfield' hfield='hills'"})
      check_alike(scene(std::string("<geom ") + shape + " material='" + material + "'/>"), .97, 1.5,
                  .04);
}

TEST_CASE("Meshes and height fields have the same normals as in OpenGL, in light and in shadow") {
  const std::string lamp = "<light pos='.5 .5 4' dir='0 0 -1' cutoff='60'/>"
                           "<geom type='plane' size='3 3 .1' pos='0 0 -1'/>";
  for (const char* shape :
       {"type='mesh' mesh='plain'", "type='mesh' mesh='mapped'", "type='hfield' hfield='hills'"}) {
    check_alike(scene(std::string("<geom ") + shape + " rgba='.8 .6 .3 1'/>"), .985, .5, .01);
    check_alike(scene(lamp + "<geom " + shape + " rgba='.8 .6 .3 1'/>"), .96, 1.5,
                .08); // edges of shadows differ
  }
}

TEST_CASE("A skin is drawn as in OpenGL") {
  const std::string body = "<body name='a'><joint type='ball'/><geom size='.01' group='5'/></body>"
                           "<geom type='plane' size='2 2 .1' pos='0 0 -.5'/>";
  const auto skin = [](const std::string& material) {
    return "<deformable><skin name='s' inflate='.05' " + material
           + " vertex='-1 -1 0  1 -1 0  1 1 0  -1 1 0  0 0 1'"
             " texcoord='0 0 1 0 1 1 0 1 .5 .5'"
             " face='0 1 4  1 2 4  2 3 4  3 0 4  0 3 1  1 3 2'>"
             "<bone body='a' bindpos='0 0 0' bindquat='1 0 0 0' vertid='0 1 2 3 4'"
             " vertweight='1 1 1 1 1'/></skin></deformable>";
  };
  check_alike(scene(body, skin("rgba='.8 .5 .3 1'")), .975, 1, .05);
  check_alike(scene(body, skin("material='flat'")), .96, 1.5, .06);
}

TEST_CASE("OpenGL draws every geom of a model that has thousands of them") {
  constexpr int kMany = 2500;
  std::string geoms;
  for (int i = 0; i < kMany; ++i)
    geoms += "<geom type='box' size='.01 .01 .01' pos='3 -5 4'/>"; // behind the camera
  Physics physics(compile_model("many", scene(geoms + "<geom type='sphere' size='.9'/>")));
  OpenglRenderer renderer(physics,
                          {.height = kSide, .width = kSide, .renderer = RendererKind::opengl});
  std::vector<std::int32_t> objects(2 * renderer.pixels());
  renderer.draw_segmentation(objects);
  const std::size_t middle = 2 * static_cast<std::size_t>(kSide / 2 * kSide + kSide / 2);
  CHECK(objects[middle] == kMany);
  CHECK(objects[middle + 1] == static_cast<std::int32_t>(mjOBJ_GEOM));
}
