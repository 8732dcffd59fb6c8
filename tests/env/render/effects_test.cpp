// Tests one effect at a time on small scenes: compares the caster's pixels with OpenGL's. Each case
// also has a scene without the effect. The effect must change OpenGL's picture several times more
// than the caster differs from OpenGL, so that a caster without the effect fails.
#include "tests/env/render/two_renderers.hpp"

using namespace troupe::env;

namespace {

const std::string kCamera = R"(<camera pos="0 -3 1.2" xyaxes="1 0 0 0 .371 .928"/>)";
const std::string kLight = R"(<light pos="1 -1 3" dir="-.3 .3 -1" castshadow="false"/>)";
const std::string kSphere = R"(<geom type="sphere" size=".7" rgba=".8 .4 .2 1"/>)";
const std::string kFloor = R"(<geom type="plane" size="3 3 .1" pos="0 0 -.7" rgba=".5 .6 .5 1"/>)";

std::string scene(const std::string& world, const std::string& assets = "",
                  const std::string& visual = "") {
  return R"(<mujoco><visual><quality shadowsize="4096"/>)" + visual + "</visual><asset>" + assets
         + "</asset><worldbody>" + world + "</worldbody></mujoco>";
}

std::string with_material(const std::string& material, const std::string& more = "") {
  return scene(kCamera + kLight + R"(<geom type="sphere" size=".7" material="m"/>)" + more,
               R"(<material name="m" rgba=".6 .3 .2 1" )" + material + "/>");
}

std::string on_floor(const std::string& light, const std::string& more = kSphere) {
  return scene(kCamera + light + kFloor + more);
}

std::string textured(const std::string& texture, const std::string& material,
                     const std::string& geom) {
  return scene(kCamera + kLight + "<geom material=\"m\" " + geom + "/>",
               "<texture name=\"t\" " + texture + "/><material name=\"m\" texture=\"t\" " + material
                   + "/>");
}

struct Effect {
  std::string name;
  std::string with;
  std::string without;
  double similarity = .985; // at least
  double share_off = .01;   // at most, of colours away from edges: off by more than 4 levels
  double difference = 1.5;  // at most, in levels
  double times = 4;         // at least: the effect in OpenGL's picture over `difference`
  bool depths = true;       // compare depths; OpenGL's depth buffer also holds the haze
  bool fog = false;         // the scene with the effect has fog
};

const std::string kChecker =
    R"(type="2d" builtin="checker" rgb1=".9 .8 .2" rgb2=".1 .2 .7" width="128" height="128")";
const std::string kCube =
    R"(type="cube" builtin="gradient" mark="edge" markrgb="1 1 1" rgb1=".9 .2 .2" rgb2=".1 .2 .9" width="64" height="384")";
const std::string kSky =
    R"(<texture type="skybox" builtin="gradient" rgb1=".4 .6 .9" rgb2=".1 0 .1" width="64" height="384"/>)";

std::vector<Effect> lights() {
  const std::string lamp = R"(<light pos=".5 -.8 2" dir="-.2 .3 -1" castshadow="false" )";
  const std::string bulb = R"(<light type="point" pos=".5 -.8 2"/>)";
  const std::string no_headlight = R"(<headlight active="0"/>)";
  return {
      {"the head light",
       scene(kCamera + kSphere, "",
             R"(<headlight ambient=".3 .1 .1" diffuse=".3 .7 .5" specular=".4 .4 .4"/>)"),
       scene(kCamera + kSphere)},
      {"no light at all", scene(kCamera + kSphere, "", no_headlight), scene(kCamera + kSphere)},
      {"a point light, which lights nothing", on_floor(bulb), on_floor("")},
      {"nothing but a point light", scene(bulb + kCamera + kSphere, "", no_headlight),
       scene(kCamera + kSphere)},
      {"a directional light",
       on_floor(R"(<light directional="true" dir="1 1 -1" castshadow="false"/>)"), on_floor("")},
      {"a spot light", on_floor(lamp + "/>"), on_floor("")},
      {"attenuation", on_floor(lamp + R"(attenuation=".5 .3 .2"/>)"), on_floor(lamp + "/>")},
      {"the cone of a spot", on_floor(lamp + R"(cutoff="20" exponent="3"/>)"),
       on_floor(lamp + "/>"), .98, .02},
      {"a light's ambient part", on_floor(lamp + R"(ambient=".2 .1 .3"/>)"), on_floor(lamp + "/>")},
      {"a light's own specular part",
       with_material(
           "specular=\"1\" shininess=\".6\"",
           R"(<light pos="-1 -2 2" dir=".5 1 -1" specular=".9 .2 .2" diffuse="0 0 0" castshadow="false"/>)"),
       with_material("specular=\"1\" shininess=\".6\"")},
      {"a light that is off", on_floor(lamp + R"(active="false"/>)"), on_floor(lamp + "/>")},
      {"the shadow of a spot",
       on_floor(R"(<light pos="1 -1 3" dir="-.3 .3 -1" castshadow="true"/>)"),
       on_floor(R"(<light pos="1 -1 3" dir="-.3 .3 -1" castshadow="false"/>)"), .975, .02, 2, 2},
      {"a directional shadow",
       on_floor(R"(<light directional="true" dir="1 1 -1" castshadow="true"/>)"),
       on_floor(R"(<light directional="true" dir="1 1 -1" castshadow="false"/>)"), .975, .02, 2, 2},
  };
}

std::vector<Effect> materials() {
  const std::string mirror_world =
      kCamera + kLight + R"(<geom type="sphere" size=".4" rgba=".9 .2 .2 1" pos="0 0 .2"/>)";
  const auto floor_of = [&](const std::string& reflectance) {
    return scene(mirror_world + R"(<geom type="plane" size="3 3 .1" pos="0 0 -.5" material="m"/>)",
                 R"(<material name="m" rgba=".3 .3 .4 1" reflectance=")" + reflectance + "\"/>");
  };
  const auto slab_of = [&](const std::string& reflectance) {
    return scene(mirror_world + R"(<geom type="box" size="1 1 .1" pos="0 0 -.5" material="m"/>)",
                 R"(<material name="m" rgba=".3 .3 .4 1" reflectance=")" + reflectance + "\"/>");
  };
  const std::string glass = R"(<geom type="sphere" size=".5" pos="-.2 -.8 0" rgba=".2 .5 .9 .4"/>)";
  const std::string pane =
      R"(<geom type="box" size=".3 .02 .6" pos=".2 -1.4 .1" rgba=".9 .9 .2 .3"/>)";
  return {
      {"specular highlights", with_material(R"(specular="1" shininess=".9")"),
       with_material(R"(specular="0")"), .985, .01, 1.5, 1.5},
      {"broad highlights", with_material(R"(specular="1" shininess=".05")"),
       with_material(R"(specular="0")")},
      {"emission", with_material(R"(emission=".5")"), with_material("")},
      {"a material's colour", with_material(R"()"), scene(kCamera + kLight + kSphere)},
      {"a geom's colour over its material's",
       scene(kCamera + kLight + R"(<geom type="sphere" size=".7" material="m" rgba=".1 .8 .2 1"/>)",
             R"(<material name="m" rgba=".6 .3 .2 1"/>)"),
       with_material("")},
      {"a mirror floor", floor_of(".6"), floor_of("0"), .98, .01, 1.5, 3},
      {"a mirror on a box", slab_of(".6"), slab_of("0"), .98, .01, 1.5, 1.5},
      {"transparency", on_floor(kLight, kSphere + glass), on_floor(kLight), .975, .02, 2, 3},
      {"two transparent things", on_floor(kLight, kSphere + glass + pane),
       on_floor(kLight, kSphere + glass), .97, .03, 2, 1.5},
      {"transparent things through each other",
       on_floor(
           kLight,
           glass + pane
               + R"(<geom type="box" size=".9 .4 .05" pos="0 -.8 .1" rgba=".1 .9 .1 .5"/>)"
                 R"(<geom type="ellipsoid" size=".2 .3 .5" pos=".3 -.9 0" rgba=".9 .1 .1 .6"/>)"
                 R"(<geom type="plane" size="1 1 .1" pos="0 0 .4" rgba=".9 .9 .9 .3"/>)"),
       on_floor(kLight), .97, .03, 2, 3},
      {"what is wholly transparent is not drawn",
       on_floor(kLight, R"(<geom type="sphere" size=".7" rgba="1 1 1 0"/>)"), on_floor(kLight)},
  };
}

std::vector<Effect> textures() {
  const std::string plain = R"(builtin="flat" rgb1=".5 .5 .5" width="8" height="8")";
  const std::string plane = R"(type="plane" size="2 3 .1" pos="0 0 -.5")";
  const std::string ball = R"(type="sphere" size=".8")";
  const std::string box = R"(type="box" size=".6 .5 .4" euler="10 20 30")";
  const auto flat_on = [&](const std::string& geom) {
    return textured("type=\"2d\" " + plain, "", geom);
  };
  const auto cube_flat_on = [&](const std::string& geom) {
    return textured(R"(type="cube" builtin="flat" rgb1=".5 .5 .5" width="8" height="48")", "",
                    geom);
  };
  const auto solid = [&](const std::string& type) {
    return "type=\"" + type + R"(" size=".5 .6 .4" euler="10 20 30")";
  };
  return {
      {"a texture on a plane", textured(kChecker, R"(texrepeat="3 2")", plane), flat_on(plane), .97,
       .05, 3},
      {"a uniform texture on a plane",
       textured(kChecker, R"(texrepeat="3 2" texuniform="true")", plane), flat_on(plane), .97, .05,
       3},
      {"a texture on an infinite plane",
       textured(kChecker, R"(texrepeat=".5 .5" texuniform="true")",
                R"(type="plane" size="0 0 .1" pos="0 0 -.5")"),
       flat_on(R"(type="plane" size="0 0 .1" pos="0 0 -.5")"), .96, .06, 4},
      {"a texture on a box", textured(kChecker, "", box), flat_on(box), .97, .05, 3},
      {"a texture on a sphere", textured(kChecker, "", ball), flat_on(ball), .96, .06, 4},
      {"a texture on a cylinder", textured(kChecker, "", solid("cylinder")),
       flat_on(solid("cylinder")), .96, .06, 4},
      {"a texture on a capsule", textured(kChecker, "", solid("capsule")),
       flat_on(solid("capsule")), .96, .06, 4},
      {"a cube texture on a box", textured(kCube, "", box), cube_flat_on(box), .97, .05, 3},
      {"a cube texture on a sphere", textured(kCube, "", ball), cube_flat_on(ball), .97, .05, 3},
      {"a cube texture on an ellipsoid", textured(kCube, "", solid("ellipsoid")),
       cube_flat_on(solid("ellipsoid")), .97, .05, 3},
      {"a cube texture on a capsule", textured(kCube, "", solid("capsule")),
       cube_flat_on(solid("capsule")), .97, .05, 3},
      {"a uniform cube texture", textured(kCube, R"(texuniform="true" texrepeat="2 2")", box),
       cube_flat_on(box), .97, .05, 3},
  };
}

std::vector<Effect> surroundings() {
  const std::string infinite =
      R"(<geom type="plane" size="0 0 .1" pos="0 0 -.7" rgba=".3 .5 .3 1"/>)";
  return {
      {"the sky", scene(kCamera + kLight + kSphere, kSky), scene(kCamera + kLight + kSphere)},
      {"the sky, looked at upwards",
       scene(R"(<camera pos="0 -3 0" xyaxes="1 .2 0 0 -.5 1"/>)" + kLight + kSphere, kSky),
       scene(R"(<camera pos="0 -3 0" xyaxes="1 .2 0 0 -.5 1"/>)" + kLight + kSphere)},
      {"haze",
       scene(kCamera + kLight + kSphere + infinite, kSky,
             R"(<map haze=".8"/><rgba haze="1 .2 .2 1"/>)"),
       scene(kCamera + kLight + kSphere + infinite, kSky, R"(<map haze=".01"/>)"), .97, .05, 3, 1.5,
       false},
      {"haze between the far end of the plane and the horizon",
       scene(kCamera + kLight + kSphere + infinite, kSky,
             R"(<map haze=".8" zfar="5"/><rgba haze="1 .2 .2 1"/>)"),
       scene(kCamera + kLight + kSphere + infinite, kSky, R"(<map haze=".01" zfar="5"/>)"), .97,
       .05, 3, 1.5, false},
      {"fog is off unless asked for",
       scene(kCamera + kLight + kSphere + kFloor, "",
             R"(<map fogstart=".1" fogend="1"/><rgba fog="1 0 0 1"/>)"),
       scene(kCamera + kLight + kSphere)},
      {"hidden groups", on_floor(kLight, R"(<geom type="sphere" size=".7" group="3"/>)"),
       on_floor(kLight)},
  };
}

const std::string kFog = R"(<map fogstart=".25" fogend="1.5"/><rgba fog=".7 .3 .8 1"/>)";

Effect foggy(const std::string& name, const std::string& world, const std::string& assets = "") {
  const std::string xml = scene(kCamera + kLight + world, assets, kFog);
  Effect effect{name, xml, xml};
  effect.fog = true;
  return effect;
}

std::vector<Effect> fogs() {
  const std::string behind =
      R"(<geom type="sphere" size=".7" pos="1.5 3 0" rgba=".1 .8 .2 1"/><geom type="box" size=".3 .3 .3" pos="-1.2 -1 0"/>)";
  const std::string glass = R"(<geom type="sphere" size=".5" pos="-.2 -.8 0" rgba=".2 .5 .9 .4"/>)";
  std::vector<Effect> all = {
      foggy("fog over lights and edges", kSphere + behind),
      foggy("fog over a floor", kFloor + kSphere + behind),
      foggy("fog over shadows", R"(<light pos="1 -1 3" dir="-.3 .3 -1" castshadow="true"/>)"
                                    + kFloor + kSphere + behind),
      foggy("fog over glass", kFloor + kSphere + glass + behind),
      foggy("fog before the sky", kSphere + behind, kSky),
      foggy("fog in a mirror",
            R"(<geom type="plane" size="3 3 .1" pos="0 0 -.7" material="m"/>)" + kSphere + behind,
            R"(<material name="m" rgba=".3 .3 .4 1" reflectance=".5"/>)"),
      foggy("fog before haze",
            R"(<geom type="plane" size="0 0 .1" pos="0 0 -.7" rgba=".3 .5 .3 1"/>)" + kSphere,
            kSky),
  };
  all.back().depths = false;
  return all;
}

/// Reflections: a sphere in front of a mirror, and glass on both sides of it. The mirror is a floor
/// or the top of a box.
std::vector<Effect> images() {
  const auto over = [](const std::string& mirror, const std::string& more) {
    return scene(kCamera + kLight
                     + R"(<geom type="sphere" size=".3" rgba=".9 .2 .2 1" pos=".2 .3 .3"/>)"
                     + "<geom material=\"m\" pos=\"0 0 -.5\" " + mirror + "/>" + more,
                 kSky + R"(<material name="m" rgba=".2 .2 .3 1" reflectance=".7"/>)");
  };
  const std::string floor = R"(type="plane" size="3 3 .1")";
  const std::string slab = R"(type="box" size="1.2 1.2 .1")";
  const std::string pane =
      R"(<geom type="box" size=".3 .02 .4" pos=".2 -.2 .1" rgba=".9 .9 .2 .4"/>)";
  const std::string glass =
      R"(<geom type="sphere" size=".3" pos="-.4 .1 .2" rgba=".2 .5 .9 .5"/>)"
      R"(<geom type="capsule" size=".15 .2" pos="-.1 .6 .2" rgba=".2 .9 .3 .5"/>)";
  const std::string dull = scene(kCamera + kLight, kSky);
  std::vector<Effect> all = {
      {"a mirror under the sky", over(floor, ""), dull, .98, .01, 1.5, 4},
      {"a pane over a mirror", over(floor, pane), over(floor, ""), .975, .02, 2, 2},
      {"glass over a mirror", over(floor, glass), over(floor, ""), .975, .02, 2, 2},
      {"panes and glass over a mirror", over(floor, pane + glass), over(floor, ""), .97, .03, 2, 2},
      {"panes and glass over a box", over(slab, pane + glass), over(slab, ""), .97, .03, 2, 2},
  };
  for (Effect& effect : all)
    effect.depths = false; // only OpenGL's depth buffer has the sky behind the glass
  return all;
}

std::vector<Effect> shapes() {
  const std::string assets =
      R"(<mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1  1 1 .2" scale=".9 .9 .9"/>)"
      R"(<hfield name="hills" nrow="5" ncol="4" size="1.2 1.2 .6 .2" elevation="0 1 0 2  1 0 2 0  0 2 1 1  2 0 0 1  0 1 2 0"/>)";
  std::vector<Effect> all;
  const auto add = [&](const char* name, const std::string& what) {
    all.push_back({name, scene(kCamera + kLight + kFloor + what, assets),
                   scene(kCamera + kLight + kFloor, assets), .98, .02, 1.5, 4});
  };
  const auto geom = [](const std::string& rest) {
    return "<geom rgba=\".8 .4 .2 1\" euler=\"20 35 10\" " + rest + "/>";
  };
  add("a sphere", geom(R"(type="sphere" size=".6")"));
  add("a capsule", geom(R"(type="capsule" size=".3 .5")"));
  add("an ellipsoid", geom(R"(type="ellipsoid" size=".3 .5 .7")"));
  add("a cylinder", geom(R"(type="cylinder" size=".4 .5")"));
  add("a box", geom(R"(type="box" size=".3 .4 .6")"));
  add("a plane from behind",
      R"(<geom type="plane" size=".6 .8 .1" rgba=".8 .4 .2 1" zaxis="0 1 -.2"/>)");
  add("a mesh", geom(R"(type="mesh" mesh="wedge")"));
  add("a height field", R"(<geom type="hfield" hfield="hills" rgba=".8 .4 .2 1" pos="0 0 -.5"/>)");
  all.back().similarity = .975; // OpenGL lights its few vertices only and interpolates between them
  all.back().share_off = .25;
  all.back().difference = 2.5;
  add("a sphere site", R"(<site type="sphere" size=".5" rgba=".2 .8 .2 1"/>)");
  add("a box site", R"(<site type="box" size=".3 .4 .5" euler="10 20 30" rgba=".2 .8 .2 1"/>)");
  add("a cylinder site",
      R"(<site type="cylinder" size=".3 .5" euler="40 20 30" rgba=".2 .8 .2 1"/>)");
  const auto flex = [](const std::string& rest) {
    return "<body name=\"b\" pos=\"0 0 .1\" euler=\"30 20 10\"><flexcomp name=\"f\" rgba=\".8 .4 "
           ".2 1\" "
           "mass=\"1\" "
           + rest + "/></body>";
  };
  add("a rope", flex(R"(type="grid" count="8 1 1" spacing=".2 .2 .2" dim="1" radius=".05")"));
  add("a cloth", flex(R"(type="grid" count="6 5 1" spacing=".25 .25 .25" dim="2" radius=".02")"));
  add("a soft body", flex(R"(type="grid" count="4 4 4" spacing=".3 .3 .3" dim="3" radius=".02")"));
  add("things smaller than a pixel",
      R"(<geom type="capsule" size=".006" fromto="-1 0 0 1 0 1" rgba="1 1 0 1"/>)");
  all.back().similarity = .96;
  all.back().times = 1.5;
  return all;
}

void check(const std::vector<Effect>& effects) {
  for (const Effect& effect : effects) {
    CAPTURE(effect.name);
    const TwoRenderers with(effect.with, "0", effect.fog);
    const TwoRenderers without(effect.without);
    CHECK(with.similarity() >= effect.similarity);
    CHECK(with.difference() <= effect.difference);
    CHECK(with.share_off(4) <= effect.share_off);
    const double effect_size = mean_absolute_difference(with.theirs.rgb, without.theirs.rgb);
    if (effect_size > 0)
      CHECK(effect_size > effect.times * with.difference());
    const ShapeLikeness likeness = with.shapes();
    CHECK(likeness.agreement() >= .99);
    if (effect.depths)
      CHECK(likeness.depth_share_within() >= .99);
  }
}

} // namespace

TEST_CASE("Lights and shadows match OpenGL") {
  check(lights());
}

TEST_CASE("Materials, mirrors and transparency match OpenGL") {
  check(materials());
}

TEST_CASE("Textures match OpenGL") {
  check(textures());
}

TEST_CASE("The sky, haze and hidden groups match OpenGL") {
  check(surroundings());
}

TEST_CASE("Fog matches OpenGL") {
  check(fogs());
}

TEST_CASE("Mirrors reflect transparent shapes, but not the sky, as in OpenGL") {
  check(images());
}

TEST_CASE("Every shape matches OpenGL") {
  check(shapes());
}

namespace {

void check_cameras(const std::vector<std::string>& cameras) {
  const std::string body =
      R"(<body name="b" pos=".3 .2 .3"><freejoint/><geom type="box" size=".3 .2 .1" rgba=".8 .4 .2 1"/>)"
      R"(<camera name="track" mode="track" pos="0 -2 .5" xyaxes="1 0 0 0 .2 1"/>)"
      R"(<camera name="com" mode="trackcom" pos="0 -2 .5" xyaxes="1 0 0 0 .2 1"/>)"
      R"(<camera name="eye" pos=".4 0 .1" xyaxes="0 -1 0 .2 0 1"/></body>)"
      R"(<camera name="wide" fovy="100" pos="0 -2 1" xyaxes="1 0 0 0 .5 1"/>)"
      R"(<camera name="narrow" fovy="8" pos="0 -12 4" xyaxes="1 0 0 0 .33 1"/>)"
      R"(<camera name="target" mode="targetbody" target="b" pos="1 -2 1"/>)"
      R"(<camera name="targetcom" mode="targetbodycom" target="b" pos="-1 -2 1"/>)"
      R"(<camera name="flat" projection="orthographic" fovy="2.5" pos="0 -3 1" xyaxes="1 0 0 0 .3 1"/>)"
      R"(<camera name="lens" pos="0 -3 1" xyaxes="1 0 0 0 .3 1" resolution="100 100" focalpixel="90 120" principalpixel="8 -5" sensorsize=".01 .01"/>)";
  const std::string other =
      R"(<geom type="capsule" fromto="1 2 0 1.5 2 1" size=".2" rgba=".2 .4 .8 1"/>)";
  const std::string xml = scene(kLight + kFloor + body + other, kSky);
  for (const std::string& camera : cameras) {
    CAPTURE(camera);
    const TwoRenderers both(xml, camera);
    CHECK(both.similarity() >= .98);
    CHECK(both.difference() <= 1.5);
    const ShapeLikeness likeness = both.shapes();
    CHECK(likeness.inner_pixels > 1000);
    CHECK(likeness.agreement() >= .99);
    CHECK(likeness.depth_share_within() >= .99);
  }
}

} // namespace

TEST_CASE("Every kind of camera matches OpenGL") {
  check_cameras(
      {"track", "com", "eye", "wide", "narrow", "target", "targetcom", "flat", "lens", "-1"});
}
