// A person looks at a simulation and pulls its bodies.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "env/interaction/hand.hpp"
#include "env/interaction/watched.hpp"
#include "env/make/make.hpp"
#include "tests/env/fake_environment.hpp"

using namespace troupe::env;

namespace {

using Vector = std::array<double, 3>;

double distance(const Vector& a, const Vector& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

struct Scene {
  explicit Scene(const std::string& task) : environment(make_task(task)) {
    observation.resize(environment->spec().observation_bytes());
    environment->reset(3, observation);
    caster.emplace(caster_model(physics().compiled()),
                   CastOptions{.height = 48, .width = 64, .camera = -1});
  }
  Physics& physics() { return *environment->physics(); }
  Viewpoint view(const OrbitCamera& camera) { return camera.viewpoint(physics(), 64.0 / 48); }

  /// Grabs the first movable body, searching column by column.
  std::optional<Vector> grab(Hand& hand, const OrbitCamera& camera) {
    caster->look_through(camera.camera());
    for (double u = -0.99; u < 1; u += 2.0 / 64)
      for (double v = -0.99; v < 1; v += 2.0 / 48)
        if (hand.grab(physics(), *caster, view(camera), u, v))
          return Vector{u, v, 0};
    return std::nullopt;
  }

  std::unique_ptr<Environment> environment;
  std::vector<std::byte> observation;
  std::optional<RayCaster> caster;
};

/// A light arm on a heavy trunk. The force that is applied before a step acts for 50 ms.
class LightArm final : public Environment {
public:
  LightArm()
      : physics_(compile_model("light arm", R"(<mujoco><option timestep=".005" gravity="0 0 0"/>
    <worldbody><camera pos="0 -3 0" xyaxes="1 0 0 0 0 1"/>
    <body name="trunk"><freejoint/><geom type="box" size=".3 .3 .5"/>
    <body name="arm" pos=".3 0 0"><joint type="hinge" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05"/></body></body></worldbody></mujoco>)")) {
    spec_.name = "light arm";
    spec_.control_timestep_seconds = 0.05;
  }
  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t, std::span<std::byte>) override {
    physics_.reset();
    return {};
  }
  TimeStep step(std::span<const double>, std::span<std::byte>) override {
    physics_.step(10);
    return {StepType::mid, 0, 1};
  }
  void save_state(std::vector<std::byte>&) const override {}
  std::span<const std::byte> load_state(std::span<const std::byte> in) override { return in; }
  Physics* physics() override { return &physics_; }

private:
  EnvironmentSpec spec_;
  Physics physics_;
};

} // namespace

TEST_CASE("Turning a model's camera starts from its pose and orbits the point that it looked at") {
  Scene scene("quadruped_walk");
  OrbitCamera camera(scene.physics());
  const Viewpoint before = scene.view(camera);
  camera.turn(scene.physics(), 0, 0);
  CHECK(camera.name(scene.physics()) == "stands");
  CHECK(distance(scene.view(camera).eye, before.eye) < 1e-9);
  CHECK(distance(scene.view(camera).forward, before.forward) < 1e-9);
  const Vector middle = before.at(0, 0, camera.camera().distance);
  camera.turn(scene.physics(), 0.3, -0.1);
  const Viewpoint after = scene.view(camera);
  CHECK(distance(after.eye, before.eye) > 0.1);
  CHECK(distance(after.at(0, 0, camera.camera().distance), middle) < 1e-9);
  camera.turn(scene.physics(), 0, 10); // stops short of the top
  CHECK(std::abs(camera.camera().elevation) < 90);
}

TEST_CASE(
    "Shifting the camera keeps the point under the pointer there, and zooming brings it nearer") {
  Scene scene("quadruped_walk");
  OrbitCamera camera(scene.physics());
  camera.turn(scene.physics(), 0, 0);
  const double depth = camera.camera().distance;
  const Vector there = scene.view(camera).at(0, 0, depth);
  camera.shift(scene.physics(), 0.25, 0.1);
  const Viewpoint square = camera.viewpoint(scene.physics(), 1);
  CHECK(distance(square.at(0.5, 0.2, depth), there) < 1e-9);
  camera.zoom(scene.physics(), 0.5);
  CHECK(camera.camera().distance == doctest::Approx(depth * std::exp(-0.5)));
  camera.zoom(scene.physics(), 1e9);
  CHECK(camera.camera().distance > 0);
}

TEST_CASE("A pixel's place in space follows from its distance, whatever the camera's projection") {
  const std::string flat = R"(<global orthographic="true" fovy="2.5"/>)";
  const auto with = [](const std::string& camera, const std::string& visual = "") {
    return "<mujoco><visual>" + visual + "</visual><worldbody>" + camera
           + R"(<geom type="sphere" size=".5" pos=".2 .1 .3"/></worldbody></mujoco>)";
  };
  const auto seen_by = [&](const std::string& more) {
    return with("<camera pos=\"0 -3 1\" xyaxes=\"1 0 0 0 .3 1\" " + more + "/>");
  };
  for (const std::string& xml :
       {seen_by(""), seen_by(R"(projection="orthographic" fovy="2.5")"),
        seen_by(R"(resolution="100 100" focalpixel="90 120" principalpixel="8 -5")"
                R"( sensorsize=".01 .01")"),
        with(""), with("", flat)}) {
    CAPTURE(xml);
    constexpr int kWidth = 64;
    constexpr int kHeight = 48;
    Physics physics(compile_model("ball", xml));
    const OrbitCamera camera(physics);
    RayCaster caster(caster_model(physics.compiled()),
                     {.height = kHeight, .width = kWidth, .camera = -1});
    caster.look_through(camera.camera());
    std::vector<std::int32_t> objects(2 * kWidth * kHeight);
    std::vector<float> distances(kWidth * kHeight);
    caster.draw_segmentation(physics.model(), physics.data(), objects, distances);
    const Viewpoint view = camera.viewpoint(physics, static_cast<double>(kWidth) / kHeight);
    int seen = 0;
    double farthest = 0; // from the sphere
    for (int i = 0; i < kWidth * kHeight; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (objects[2 * at] < 0)
        continue;
      ++seen;
      const Vector place = view.at(2 * (i % kWidth + 0.5) / kWidth - 1,
                                   1 - 2 * (i / kWidth + 0.5) / kHeight, distances[at]);
      farthest = std::max(farthest, std::abs(distance(place, {0.2, 0.1, 0.3}) - 0.5));
    }
    CHECK(seen > 100);
    CHECK(farthest < 1e-3);
  }
}

TEST_CASE("An orthographic camera shifts by what the pointer covers") {
  Physics physics(compile_model("ball", R"(<mujoco><visual><global orthographic="true" fovy="2.5"/>
    </visual><worldbody><geom type="sphere" size=".5"/></worldbody></mujoco>)"));
  OrbitCamera camera(physics);
  const Vector there = camera.viewpoint(physics, 1).at(0, 0, 1);
  camera.shift(physics, 0.25, 0.1);
  CHECK(distance(camera.viewpoint(physics, 1).at(0.5, 0.2, 1), there) < 1e-6);
}

TEST_CASE("Cameras are chosen in turn, and one of them follows the body") {
  Scene scene("walker_walk");
  OrbitCamera camera(scene.physics());
  CHECK(camera.name(scene.physics()) == "side");
  camera.choose_next(scene.physics());
  CHECK(camera.name(scene.physics()) == "back");
  camera.choose_next(scene.physics());
  CHECK(camera.name(scene.physics()) == "follows");
  const Viewpoint before = scene.view(camera);
  scene.physics().data().qpos[1] += 2; // forward
  scene.physics().forward();
  camera.follow(scene.physics());
  CHECK(scene.view(camera).eye[0] == doctest::Approx(before.eye[0] + 2));
  camera.choose_next(scene.physics());
  CHECK(camera.name(scene.physics()) == "stands");
  camera.choose_next(scene.physics());
  CHECK(camera.name(scene.physics()) == "side");
}

TEST_CASE("A held body moves to the pointer and is free when it is released") {
  Scene pulled("walker_walk");
  Scene left_alone("walker_walk");
  OrbitCamera camera(pulled.physics());
  Hand hand;
  const auto at = pulled.grab(hand, camera);
  REQUIRE(at);
  CHECK(hand.body_name(pulled.physics()) == "torso");
  const auto height = [](Scene& scene) { return scene.physics().data().subtree_com[3 + 2]; };
  hand.pull(pulled.view(camera), (*at)[0], (*at)[1] + 0.5); // up a quarter of the picture
  for (int i = 0; i < 400; ++i) {
    hand.apply(pulled.physics(), pulled.physics().model().opt.timestep);
    pulled.physics().step(1);
    left_alone.physics().step(1);
  }
  CHECK(height(pulled) > height(left_alone) + 0.2);
  hand.release();
  CHECK(hand.body_name(pulled.physics()).empty());
  hand.apply(pulled.physics(), 0.01);
  for (int i = 0; i < 6 * pulled.physics().model().nbody; ++i)
    CHECK(pulled.physics().data().xfrc_applied[i] == 0);
}

TEST_CASE(
    "A light limb of a heavy body follows the pointer although its force is held for a step") {
  Hand hand;
  Played played(std::make_unique<Watched>(
      std::make_unique<LightArm>(),
      Watched::Watcher{[&](Physics& physics) { hand.apply(physics, 0.05); },
                       [](Physics&, const TimeStep&) {}}));
  played.reset(1);
  Physics& physics = *played.environment->physics();
  RayCaster caster(caster_model(physics.compiled()), {.height = 48, .width = 48, .camera = 0});
  const Viewpoint view = OrbitCamera(physics).viewpoint(physics, 1);
  REQUIRE(hand.grab(physics, caster, view, 0.486, 0)); // 0.3 m from the arm's joint
  REQUIRE(hand.body_name(physics) == "arm");
  hand.pull(view, 0.365, 0.21); // as far from the joint, 60 degrees higher
  for (int i = 0; i < 100; ++i)
    played.step({});
  const mjtNum* axes = physics.data().xmat + 9 * physics.id(mjOBJ_BODY, "arm");
  CHECK(axes[6] == doctest::Approx(std::sin(mjPI / 3)).epsilon(0.08)); // how steep the arm is
}

TEST_CASE("A transparent body is held at its own surface, not at what is seen through it") {
  Physics physics(compile_model("glass", R"(<mujoco><option gravity="0 0 0"/><worldbody>
    <camera pos="0 -3 0" xyaxes="1 0 0 0 0 1"/><geom type="box" size="5 .1 5" pos="0 4 0"/>
    <body><freejoint/><geom type="sphere" size=".5" rgba=".2 .5 .9 .4"/></body>
    </worldbody></mujoco>)"));
  RayCaster caster(caster_model(physics.compiled()), {.height = 48, .width = 48, .camera = 0});
  const Viewpoint view = OrbitCamera(physics).viewpoint(physics, 1);
  Hand hand;
  REQUIRE(hand.grab(physics, caster, view, 0.01, 0.01));
  hand.pull(view, 0.11, 0.01); // to the right
  hand.apply(physics, 0.01);
  const mjtNum* force = physics.data().xfrc_applied + 6; // of body 1: force, torque
  CHECK(force[0] > 0);
  CHECK(force[5] == doctest::Approx(0.5 * force[0]).epsilon(0.02)); // the arm is the radius
}

TEST_CASE("A skin is held by the body that moves it at the pointer") {
  Scene scene("dog_stand"); // shows little but its skin
  Physics& physics = scene.physics();
  const OrbitCamera camera(physics);
  scene.caster->look_through(camera.camera());
  const int width = scene.caster->options().width;
  const int height = scene.caster->options().height;
  const auto pixels = static_cast<std::size_t>(width * height);
  std::vector<std::int32_t> objects(2 * pixels);
  std::vector<float> distances(pixels);
  scene.caster->draw_segmentation(physics.model(), physics.data(), objects, distances);
  int held = 0;
  for (std::size_t i = 0; i < pixels; i += 29) {
    if (objects[2 * i + 1] != mjOBJ_SKIN)
      continue;
    const double u = 2 * (static_cast<int>(i) % width + 0.5) / width - 1;
    const double v = 1 - 2 * (static_cast<int>(i) / width + 0.5) / height;
    Hand hand;
    REQUIRE(hand.grab(physics, *scene.caster, scene.view(camera), u, v));
    const auto body = static_cast<std::size_t>(physics.id(mjOBJ_BODY, hand.body_name(physics)));
    const Vector at = scene.view(camera).at(u, v, distances[i]);
    const mjtNum* place = physics.data().xpos + 3 * body;
    CHECK(distance(at, {place[0], place[1], place[2]}) < 0.3); // the longest bone's reach is 0.24
    ++held;
  }
  CHECK(held > 4);
}

TEST_CASE("The floor and the sky cannot be grabbed") {
  Scene scene("quadruped_walk");
  OrbitCamera camera(scene.physics());
  scene.caster->look_through(camera.camera());
  Hand hand;
  CHECK_FALSE(hand.grab(scene.physics(), *scene.caster, scene.view(camera), 0.98, -0.98));
  CHECK_FALSE(hand.grab(scene.physics(), *scene.caster, scene.view(camera), 0.98, 0.98));
  hand.apply(scene.physics(), 0.01);
  CHECK_FALSE(hand.holds());
}

TEST_CASE("A watcher sees every control step of a repeated action, and a task without physics is "
          "refused") {
  const EnvironmentConfig config{.task = "cartpole_balance", .action_repeat = 4};
  int before = 0;
  int after = 0;
  Played played(wrap_environment(
      std::make_unique<Watched>(make_bare(config),
                                Watched::Watcher{[&](Physics&) { ++before; },
                                                 [&](Physics&, const TimeStep&) { ++after; }}),
      config));
  played.reset(1).step({0.5});
  CHECK(before == 4);
  CHECK(after == 5);
  CHECK_THROWS_WITH_AS(Watched(make_bare({.task = "CartPole-v1"}), {}),
                       doctest::Contains("CartPole-v1 has no MuJoCo simulation"),
                       std::invalid_argument);
}
