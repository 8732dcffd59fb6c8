#include <doctest/doctest.h>

#include <cmath>

#include "env/make/make.hpp"
#include "env/plugin/check_environment.hpp"
#include "env/plugin/own_environments.hpp"
#include "tests/env/fake_environment.hpp"
#include "tests/folders.hpp"

using namespace troupe::env;

namespace {

std::string sample(const std::string& way) {
  return troupe::in_build("tests/env/plugin/libsample_") + way + ".so";
}

std::unique_ptr<Environment> make(const std::string& way, const std::string& name = "sample") {
  return make_plugin(sample(way), name, Options());
}

} // namespace

TEST_CASE("A plug-in's environment is configured by name like a built-in one") {
  CHECK(plugin_environments(sample("good")) == std::vector<std::string>{"another", "sample"});
  Played played(
      make_environment({.task = "sample", .plugin = sample("good"), .options = {"step=2.5"}}));
  CHECK(played.environment->spec().observations
        == std::vector<ArraySpec>{{"state", ElementType::float32, {1}}});
  played.reset(3).step({.5});
  CHECK(numbers<float>(played.observation) == std::vector<float>{6});
  const auto findings = check_environment([] { return make("good"); });
  for (const CheckFinding& finding : findings)
    MESSAGE(finding.rule << ": " << finding.text);
  CHECK(findings.empty());
}

TEST_CASE("A file that is not a plug-in of this build is refused, and the error names the reason "
          "and a remedy") {
  const auto refuse = [](const std::string& library, const char* part) {
    CAPTURE(library);
    CHECK_THROWS_WITH_AS(make_plugin(library, "sample", Options()), doctest::Contains(part),
                         std::invalid_argument);
  };
  refuse("nowhere/libnone.so", "nowhere/libnone.so is not a file");
  refuse(troupe::in_source(), "is not a file");
  refuse(troupe::in_source("README.md"), "cannot be loaded as a shared library");
  refuse(troupe::in_build("tests/env/plugin/libsample_no_entry.so"),
         "no entry point troupe_environments");
  refuse(sample("no_magic"), "TROUPE_ENVIRONMENTS");
  refuse(sample("other_version"),
         "was built for version 3 of the interface and this program has version 2; build it again");
  refuse(sample("other_compiler"), "was built with another compiler and this program with C++ ABI");
  refuse(sample("other_sizes"), "build it again");
  refuse(sample("bad_spec"), "action[0] is bounded by");
  refuse(sample("bad_choices"), "action[0] has 3 choices and the bounds -1.000000 and 1.000000");
  CHECK_THROWS_WITH_AS(make("good", "simple"), doctest::Contains("nearest: 'sample'"),
                       std::invalid_argument);
}

TEST_CASE(
    "A plug-in that throws or returns invalid values fails alone, and other plug-ins continue") {
  Played sound(make("good"));
  sound.reset(1);
  const auto fails = [&](const char* way, const char* part) {
    CAPTURE(way);
    CHECK_THROWS_WITH_AS(
        [&] {
          Played played(make(way));
          played.reset(1);
          for (int i = 0; i < 5; ++i)
            played.step({0});
        }(),
        doctest::Contains(part), std::runtime_error);
    sound.reset(1).step({0});
    CHECK(sound.last.reward == 2);
  };
  fails("throws_in_constructor", "its constructor threw: no licence");
  fails("throws_in_spec", "its spec() threw: no spec");
  fails("throws_in_reset", "reset() threw: no reset");
  fails("throws_in_step", "step() threw: no step");
  fails("throws_a_number", "step() threw something that is not a std::exception");
  fails("bad_reward", "the reward");
  fails("bad_discount", "the discount 1.5");
  fails("bad_observation", "'count' that is not finite");
  fails("null_object", "returned no object");
}

TEST_CASE("After a failure, step() throws until reset() starts a new episode") {
  Played played(make("throws_in_step"));
  played.reset(1).step({0}).step({0});
  CHECK_THROWS_AS(played.step({0}), std::runtime_error);
  CHECK_THROWS_WITH_AS(played.step({0}), doctest::Contains("call reset() first"),
                       std::invalid_argument);
  CHECK(played.reset(1).step({0}).last.reward == 2);
}

TEST_CASE("Options are parsed by type, and unused options are refused") {
  const auto fails = [](std::vector<std::string> options, const char* part) {
    CAPTURE(part);
    CHECK_THROWS_WITH_AS(make_plugin(sample("good"), "sample", parse_options(options)),
                         doctest::Contains(part), std::invalid_argument);
  };
  fails({"step=fast"}, "option step is 'fast'; it must be a number");
  fails({"step=inf"}, "it must be a number");
  fails({"stop=1"}, "has no option 'stop'; nearest: 'step'");
  fails({"step=1", "step=2"}, "given twice");
  fails({"=1"}, "key=value");
  fails({"step"}, "key=value");
  const Options options({{"a", "7"}, {"b", "true"}, {"c", "x y"}});
  CHECK(options.integer("a", 0) == 7);
  CHECK(options.flag("b", false));
  CHECK(options.text("c", "") == "x y");
  CHECK(options.integer("d", 5) == 5);
  CHECK_THROWS_AS(options.flag("a", true), std::invalid_argument);
  CHECK_THROWS_AS(options.integer("c", 1), std::invalid_argument);
}

TEST_CASE("An environment that is linked into the program is available by name") {
  CHECK(linked_environments() == std::vector<std::string>{"my_counting"});
  CHECK(is_environment("my_counting"));
  Played played(make_environment({.task = "my_counting"}));
  played.reset(1).step({0, 0});
  CHECK(played.last.reward == 1);
  CHECK_THROWS_WITH_AS(make_environment({.task = "my_countinx"}),
                       doctest::Contains("nearest: 'my_counting'"), std::invalid_argument);
  CHECK(make_linked("other", Options()) == nullptr);
}

TEST_CASE(
    "A guarded environment clips actions and refuses invalid calls before they reach the class") {
  std::vector<double> given;
  Played played(guard(std::make_unique<Counting>(&given), "mine"));
  CHECK_THROWS_AS(played.step({0, 0}), std::invalid_argument);
  played.reset(1).step({-99, 99});
  CHECK(given == std::vector<double>{-2, 1});
  CHECK_THROWS_AS(played.step({0}), std::invalid_argument);
  CHECK_THROWS_AS(played.step({0, std::nan("")}), std::invalid_argument);
  std::vector<std::byte> small(4);
  CHECK_THROWS_AS(played.environment->reset(1, small), std::invalid_argument);
}

TEST_CASE("A spec that breaks a rule is reported in one line that names what is wrong") {
  const EnvironmentSpec spec = Counting().spec();
  CHECK(spec_problem(spec).empty());
  const auto reported = [&](const char* part, auto change) {
    EnvironmentSpec changed = spec;
    change(changed);
    const std::string problem = spec_problem(changed);
    CHECK_MESSAGE(problem.find(part) != std::string::npos, problem);
    CHECK_MESSAGE(problem.find('\n') == std::string::npos, problem);
  };
  reported("its spec has no name", [](auto& s) { s.name = ""; });
  reported("no observations", [](auto& s) { s.observations.clear(); });
  reported("an observation array has no name", [](auto& s) { s.observations[1].name = ""; });
  reported("two observations 'count'", [](auto& s) { s.observations[1].name = "count"; });
  reported("'count' has an axis of 0", [](auto& s) { s.observations[0].shape = {0}; });
  reported("'count' has an axis of 1099511627776", [](auto& s) {
    s.observations[0].shape = {1L << 40, 1L << 40};
  });
  reported("'count' has an unknown element type",
           [](auto& s) { s.observations[0].type = static_cast<ElementType>(9); });
  reported("its action has 0 dimensions", [](auto& s) { s.action = {}; });
  reported("its action has 0 dimensions", [](auto& s) { s.action.minimum.clear(); });
  reported("2 action minima and 1 maxima", [](auto& s) { s.action.maximum.pop_back(); });
  reported("action[0] is bounded by nan and 6.000000",
           [](auto& s) { s.action.minimum[0] = std::nan(""); });
  reported("1 numbers of choices for 2", [](auto& s) { s.action.choices = {2}; });
  reported("action[1] has 1 choices", [](auto& s) { s.action.choices = {0, 1}; });
  reported("they must be 0 and 2", [](auto& s) { s.action.choices = {0, 3}; });
  reported("its episode_steps is -1", [](auto& s) { s.episode_steps = -1; });
  reported("its action_repeat is 0", [](auto& s) { s.action_repeat = 0; });
  reported("'count' does not divide into frame_stack 2", [](auto& s) { s.frame_stack = 2; });
  reported("its control_timestep_seconds is -1", [](auto& s) { s.control_timestep_seconds = -1; });
  EnvironmentSpec choosing = spec;
  choosing.action.choices = {0, 2}; // its bounds are 0 and 1
  CHECK(spec_problem(choosing).empty());
  EnvironmentSpec both = spec; // only the picture is stacked
  both.observations = {{"pixels", ElementType::uint8, {6, 8, 8}},
                       {"state", ElementType::float32, {5}},
                       {"height", ElementType::float32, {}}};
  both.frame_stack = 3;
  CHECK(spec_problem(both).empty());
  both.observations[0].shape[0] = 4;
  CHECK(spec_problem(both).starts_with("observation 'pixels' does not divide"));
}
