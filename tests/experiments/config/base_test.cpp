#include "experiments/config/base.hpp"

#include <doctest/doctest.h>

#include <google/protobuf/util/message_differencer.h>

#include "experiments/config/config.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

struct Files {
  TemporaryFolder folder;

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  Experiment load(const std::string& name, const std::vector<std::string>& sets = {}) const {
    return load_experiment(folder / name, sets);
  }
  std::string complaint(const std::string& name, const std::vector<std::string>& sets = {}) const {
    return error_of<ConfigError>([&] { load(name, sets); });
  }
};

} // namespace

TEST_CASE("A file's keys override those of its base, which override those of their own base") {
  const Files files;
  files.write("lowest.textproto", R"(
name: "lowest"
environment { pixels { height: 32 width: 48 } action_repeat: 2 }
d4pg { policy_layers: [64, 64] critic_layers: [32] }
replay { n_step: 1 discount: 0.9 })");
  files.write("bases/middle.textproto", R"(base: "../lowest"
environment { pixels { width: 64 } } replay { n_step: 3 })");
  files.write("walk.textproto", R"(base: "bases/middle.textproto"
environment { task: "walker_walk" } d4pg { policy_layers: [16] })");
  const Experiment e = files.load("walk.textproto", {"replay.discount=0.5"});
  CHECK(e.name() == "walk");
  CHECK(e.environment().task() == "walker_walk");
  CHECK(e.environment().action_repeat() == 2);
  CHECK(e.environment().pixels().height() == 32);
  CHECK(e.environment().pixels().width() == 64);
  CHECK(e.replay().n_step() == 3);
  CHECK(e.replay().discount() == 0.5);
  REQUIRE(e.d4pg().policy_layers_size() == 1); // a list replaces that of the base
  CHECK(e.d4pg().policy_layers(0) == 16);
  CHECK(e.d4pg().critic_layers(0) == 32);
  CHECK_FALSE(e.has_base());
  // The text in a run's folder does not depend on any of these files.
  CHECK(google::protobuf::util::MessageDifferencer::Equals(
      e, parse_experiment(resolved_text(e), "elsewhere")));
}

TEST_CASE("An error in a base is reported with the base's name and line") {
  const Files files;
  files.write("base.textproto", "environment { task: \"walker_walk\" }\nreplay { n_step: 0 }");
  files.write("top.textproto", "base: \"base\"\n");
  CHECK(has(files.complaint("top.textproto"), "base.textproto:2:10: replay.n_step is 0"));
  CHECK(files.complaint("top.textproto", {"replay.n_step=1"}).empty());
  files.write("top.textproto", "replay { n_step: -1 }\nbase: \"base\"\n");
  CHECK(has(files.complaint("top.textproto"), "top.textproto:1:10: replay.n_step is -1"));
  files.write("base.textproto", "environment { task: \"Hopper-v5\" options: \"frame_skip=2\"\n"
                                "options: \"frame_skip=3\" }");
  files.write("top.textproto",
              "base: \"base\"\nenvironment { options: [\"frame_skip=2\", \"skip\"] }");
  CHECK(has(files.complaint("top.textproto"), "top.textproto:2:15: environment.options has"));
  files.write("top.textproto", "replay { n_step: -1 }\nbase: \"base\"\n");
  files.write("base.textproto", "replay { m_step: 1 }");
  CHECK(has(files.complaint("top.textproto"), "base.textproto:1:10: replay.m_step is not a key"));
}

TEST_CASE("A missing base, a cycle of bases and --set base= are refused with an explanation") {
  const Files files;
  files.write("walker.textproto", "");
  files.write("top.textproto", "\n  base: \"walkr\"");
  const std::string missing = files.complaint("top.textproto");
  CHECK(has(missing, "top.textproto:2:3: base is \"walkr\", but there is no file "));
  CHECK(has(missing, "did you mean \"walker\"?"));
  files.write("top.textproto", "base: \"/dev\"");
  CHECK(has(files.complaint("top.textproto"), "there is no file /dev.textproto"));
  files.write("one.textproto", "base: \"two\"");
  files.write("two.textproto", "base: \"one\"");
  CHECK(has(files.complaint("one.textproto"), "do two files name each other?"));
  CHECK(has(files.complaint("walker.textproto", {"base=one"}),
            "--set base=one: only a file can name a base"));
}

TEST_CASE("The path of a plug-in is relative to the file that contains it, or to the working "
          "directory with --set") {
  const Files files;
  files.write("bases/own.textproto", "environment { task: \"mine\" plugin: \"../build/lib.so\" }");
  files.write("top.textproto", "base: \"bases/own\"");
  const Experiment e = files.load("top.textproto");
  CHECK(e.environment().plugin() == (files.folder / "build/lib.so").string());
  CHECK(parse_experiment(resolved_text(e), "elsewhere/config.textproto").environment().plugin()
        == e.environment().plugin());
  files.write("other/top.textproto", R"(base: "../bases/own" environment { plugin: "lib.so" })");
  CHECK(files.load("other/top.textproto").environment().plugin()
        == (files.folder / "other/lib.so").string());
  const auto here = std::filesystem::current_path();
  CHECK(files.load("top.textproto", {"environment.plugin=build/lib.so"}).environment().plugin()
        == (here / "build/lib.so").string());
  CHECK(files.load("top.textproto", {"environment.plugin=", "environment.task=walker_walk"})
            .environment()
            .plugin()
            .empty());
  files.write("agent.textproto", R"(environment { task: "Pendulum-v1" }
agent { name: "mine" plugin: "build/libnone.so" })");
  CHECK(has(files.complaint("agent.textproto"),
            (files.folder / "build/libnone.so").string() + " is not a file"));
}
