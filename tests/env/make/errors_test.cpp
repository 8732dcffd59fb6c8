#include <doctest/doctest.h>

#include <chrono>
#include <limits>

#include "env/compiled_model.hpp"
#include "env/make/make.hpp"
#include "env/nearest_names.hpp"
#include "env/physics.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe::env;

namespace {

std::vector<std::byte> buffer(const Environment& environment) {
  return std::vector<std::byte>(environment.spec().observation_bytes());
}

} // namespace

TEST_CASE("The error about an unknown task names the nearest task") {
  CHECK_THROWS_WITH_AS(make_environment({.task = "cheeta_run"}), doctest::Contains("'cheetah_run'"),
                       std::invalid_argument);
  CHECK_THROWS_AS(make_task(""), std::invalid_argument);
  CHECK_THROWS_AS(make_task(std::string(100000, 'x')), std::invalid_argument);
}

TEST_CASE("Nearest names are ranked by edit distance") {
  const std::vector<std::string> names{"walk", "run", "stand", "talk", ""};
  CHECK(nearest_names("walkk", names, 2) == std::vector<std::string>{"walk", "talk"});
  CHECK(nearest_names("stann", names, 3) == std::vector<std::string>{"stand"});
  CHECK(nearest_names("run", names, 1) == std::vector<std::string>{"run"});
  CHECK(nearest_names("x", names, 9) == std::vector<std::string>{"run", "walk", "talk"});
}

TEST_CASE("Missing model files are refused, and the error names the file and a remedy") {
  CHECK_THROWS_WITH_AS(make_environment({.task = "walker_walk", .models = "/nowhere"}),
                       doctest::Contains("/nowhere/walker.xml"), std::runtime_error);
  CHECK_THROWS_WITH_AS(make_environment({.task = "walker_walk", .models = "/nowhere"}),
                       doctest::Contains("install_dependencies"), std::runtime_error);
}

TEST_CASE("Models are found in the package of the code, where the build found them, or beside a "
          "copied program") {
  const troupe::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "built");
  CHECK(models_folder("suite", folder / "built", folder / "copy/bin/troupe") == folder / "built");
  CHECK(models_folder("suite", folder / "none", folder / "copy/bin/troupe") == folder / "none");
  std::filesystem::create_directories(folder / "copy/suite");
  std::filesystem::create_directory(folder / "copy/bin");
  CHECK(models_folder("suite", folder / "built", folder / "copy/bin/troupe") == folder / "built");
  CHECK(models_folder("suite", folder / "none", folder / "copy/bin/troupe")
        == folder / "copy/suite");
  std::filesystem::create_directories(folder / "copy/share/troupe/suite");
  for (const char* object : {"copy/bin/troupe", "copy/module.so"})
    CHECK(models_folder("suite", folder / "built", folder / object)
          == folder / "copy/share/troupe/suite");
}

TEST_CASE("Sizes out of range are refused") {
  CHECK_THROWS_WITH_AS(make_environment({.task = "cheetah_run", .action_repeat = 0}),
                       doctest::Contains("action_repeat: 0"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make_environment({.task = "cheetah_run", .frame_stack = 65}),
                       doctest::Contains("frame_stack: 65"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      make_environment({.task = "cheetah_run", .pixels = PixelOptions{.height = 0}}),
      doctest::Contains("height: 0"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      make_environment({.task = "cheetah_run", .pixels = PixelOptions{.width = 5000}}),
      doctest::Contains("width: 5000"), std::invalid_argument);
}

TEST_CASE("Only a remote task has deadlines of its own") {
  using std::chrono::seconds;
  CHECK(own_deadlines({.task = "cheetah_run", .action_repeat = 4}) == seconds(0));
  CHECK(own_deadlines(
            {.task = "remote",
             .action_repeat = 2,
             .options = {"endpoint=ipc:///tmp/x", "connect_seconds=20", "deadline_seconds=90.5"}})
        == seconds(20 + 181));
  CHECK_THROWS_WITH_AS(own_deadlines({.task = "remote", .options = {"deadline_seconds=0"}}),
                       doctest::Contains("deadline_seconds"), std::invalid_argument);
}

TEST_CASE("The error about an unknown camera lists the cameras of the model") {
  for (const char* camera : {"front", "2", "-2", "", "0x", "99999999999999"})
    CHECK_THROWS_WITH_AS(
        make_environment({.task = "cheetah_run", .pixels = PixelOptions{.camera = camera}}),
        doctest::Contains("-1 (free), 0 'side', 1 'back'"), std::invalid_argument);
}

TEST_CASE("Invalid actions and buffers leave the episode unchanged") {
  const auto environment = make_environment({.task = "cheetah_run"});
  auto observation = buffer(*environment);
  const std::vector<double> action(6, .1);
  CHECK_THROWS_AS(environment->step(action, observation), std::invalid_argument); // before reset
  environment->reset(1, observation);
  std::vector<double> bad = action;
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    bad[3] = value;
    CHECK_THROWS_WITH_AS(environment->step(bad, observation), doctest::Contains("action[3]"),
                         std::invalid_argument);
  }
  CHECK_THROWS_AS(environment->step(std::vector<double>(5), observation), std::invalid_argument);
  std::vector<std::byte> small(observation.size() - 1);
  CHECK_THROWS_AS(environment->step(action, small), std::invalid_argument);
  CHECK_THROWS_AS(environment->reset(1, small), std::invalid_argument);
  CHECK(environment->step(action, observation).step_type == StepType::mid);
}

TEST_CASE("The error about an unstable simulation names the model, and a reset recovers") {
  for (const char* task : {"cheetah_run", "cartpole_swingup"}) { // Euler, Runge-Kutta
    const auto environment = make_environment({.task = task});
    auto observation = buffer(*environment);
    const std::vector<double> action(environment->spec().action.size());
    environment->reset(1, observation);
    const std::vector<std::byte> first = observation;
    environment->physics()->data().qvel[0] = 1e30;
    const auto play = [&] {
      for (int i = 0; i < 3; ++i)
        environment->step(action, observation);
    };
    CHECK_THROWS_WITH_AS(play(), doctest::Contains(environment->physics()->name().c_str()),
                         std::runtime_error);
    CHECK_THROWS_AS(environment->step(action, observation), std::invalid_argument);
    environment->reset(1, observation);
    CHECK(observation == first);
    CHECK_NOTHROW(play());
  }
}

TEST_CASE("The process uses the version of MuJoCo that made the recordings") {
  CHECK(mujoco_version() == "3.17.0");
}

TEST_CASE("MuJoCo's own errors become exceptions that name the model") {
  CHECK_THROWS_WITH_AS(compile_model("broken", "<mujoco><wor"), doctest::Contains("'broken'"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(
      compile_model("flat", "<mujoco><worldbody><geom size='0'/></worldbody></mujoco>"),
      doctest::Contains("'flat'"), std::runtime_error);
  // An error raised deep inside libmujoco unwinds through its frames: two touching balls need more
  // stack than there is.
  Physics tiny(compile_model("tiny", R"(<mujoco><size memory="4K"/><worldbody>
      <body><freejoint/><geom size="1"/></body>
      <body pos="5 0 0"><freejoint/><geom size="1"/></body></worldbody></mujoco>)"));
  for (int i = 0; i < 3; ++i) {
    tiny.reset();
    CHECK_NOTHROW(tiny.step(1));
    tiny.data().qpos[0] = 4.5;
    try {
      tiny.step(2);
      FAIL_CHECK("no error");
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      CHECK(text.find("'tiny'") != std::string::npos);
      CHECK(text.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("Full buffers of the simulation throw an error") {
  std::string balls; // all in one place: more contacts than fit into the arena
  for (int i = 0; i < 60; ++i)
    balls += "<body><freejoint/><geom size='1'/></body>";
  const auto crowd = compile_model("crowd", "<mujoco><size memory='300K'/><worldbody>" + balls
                                                + "</worldbody></mujoco>");
  CHECK_THROWS_WITH_AS(Physics(crowd).step(1), doctest::Contains("'crowd'"), std::runtime_error);
}

TEST_CASE("Objects and arrays that a model lacks are refused") {
  const auto environment = make_task("cheetah_run");
  Physics& physics = *environment->physics();
  CHECK(physics.id(mjOBJ_BODY, "torso") == 1);
  CHECK_THROWS_WITH_AS(physics.id(mjOBJ_BODY, "torsso"), doctest::Contains("'torso'"),
                       std::invalid_argument);
  CHECK_THROWS_AS(physics.sensor(99), std::invalid_argument);
  CHECK_THROWS_AS(physics.own_array("no_such"), std::invalid_argument);
  CHECK_THROWS_AS(physics.own_array("geom_type"), std::invalid_argument); // an array of integers
}

TEST_CASE("A simulation's own arrays do not change other simulations") {
  const auto a = make_task("cheetah_run");
  const auto b = make_task("cheetah_run");
  REQUIRE(a->physics()->compiled() == b->physics()->compiled());
  const double before = b->physics()->model().geom_size[0];
  a->physics()->own_array("geom_size")[0] = before + 1;
  a->physics()->own_float_array("geom_rgba")[0] = .123F;
  CHECK(a->physics()->model().geom_size[0] == before + 1);
  CHECK(b->physics()->model().geom_size[0] == before);
  a->physics()->share_arrays();
  CHECK(a->physics()->model().geom_size[0] == before);
}
