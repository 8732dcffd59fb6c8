// The example environment, checked and trained as a user would.
#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path kExamples = in_source("experiments/examples/own_environment");
const std::string kPlugin = in_build("libown_environment.so");

double mean_return(const json& summary) {
  double sum = 0;
  for (const json& one : summary.at("returns"))
    sum += one.get<double>();
  return sum / static_cast<double>(summary.at("returns").size());
}

} // namespace

TEST_CASE("The class of the environment example has at most 60 lines") {
  std::ifstream in(kExamples / "own_environment.cpp");
  int lines = 0;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    inside = inside || line.starts_with("class ");
    lines += inside ? 1 : 0;
    inside = inside && line != "};";
  }
  CHECK(lines > 20);
  CHECK(lines <= 60);
}

TEST_CASE("The environment example passes the environment check as a plug-in and linked in") {
  const Outcome plain = run_troupe({"check", "environment", "--plugin", kPlugin});
  CAPTURE(plain.output);
  CHECK(plain.exit_code == 0);
  CHECK(has(plain.output, "push_to_middle"));
  CHECK(has(plain.output, "1 of 1 environments passed"));

  const Outcome in_json =
      run_troupe({"check", "environment", "push_to_middle", "--plugin", kPlugin, "--json"});
  CHECK(in_json.exit_code == 0);
  const json report = json::parse(in_json.output);
  CHECK(report.at("passed") == true);
  CHECK(report.at("findings").empty());

  Program own({in_build("experiments/own_program"), "check", "environment", "push_to_middle",
               "--set", "environment.options=friction=1"});
  CHECK(own.wait() == 0);
  CHECK(has(own.output(), "1 of 1 environments passed"));
  Program list({in_build("experiments/own_program"), "list", "environments"});
  CHECK(list.wait() == 0);
  CHECK(has(list.output(), "push_to_middle"));
  CHECK_FALSE(has(run_troupe({"list", "environments"}).output, "push_to_middle"));
}

TEST_CASE("A plug-in error is explained in the last line, with exit code 2") {
  const auto fails = [](std::vector<std::string> words, const std::string& part) {
    const Outcome outcome = run_troupe(std::move(words));
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(has(outcome.last_line, part));
  };
  fails({"check", "environment", "--plugin", "libnone.so"}, "libnone.so is not a file");
  fails({"check", "environment", "--plugin", (kExamples / "own_environment.cpp").string()},
        "cannot be loaded as a shared library");
  fails({"check", "environment", "x", "--set", "seed=1"}, "begin with environment.");
  fails({"check", "environment", "cartpole_balanse"}, "did you mean cartpole_balance");
  fails({"check", "environment", "--statistics", "s.json"}, "name the one task");
  const std::string example = (kExamples / "own_environment.textproto").string();
  fails({"train", example, "--set", "environment.plugin=" + kPlugin, "--set",
         "environment.task=push_to_midle"},
        "nearest: 'push_to_middle'");
  fails({"train", example, "--set", "environment.plugin=" + kPlugin, "--set",
         "environment.options=fricton=1"},
        "nearest: 'friction'");
  fails({"train", example, "--set", "environment.plugin=" + kPlugin, "--set",
         "environment.pixels={}"},
        "no physics");
}

TEST_CASE("Findings of the environment check are listed in JSON and set exit code 1") {
  // With running statistics an observation depends on what was played before.
  const Outcome outcome = run_troupe({"check", "environment", "pendulum_swingup", "--json", "--set",
                                      "environment.normalization.mode=running"});
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 1);
  const json report = json::parse(outcome.output.substr(0, outcome.output.find('\n')));
  CHECK(report.at("passed") == false);
  CHECK(report.at("findings").at(0).at("level") == "error");
  CHECK(report.at("findings").at(0).at("rule") == "wrapped: determinism");
  CHECK(has(outcome.last_line, "pendulum_swingup: wrapped: determinism"));
}

TEST_CASE("Collected statistics can be read by a frozen normalisation") {
  const TemporaryFolder folder;
  const Outcome collected = run_troupe({"check", "environment", "pendulum_swingup", "--statistics",
                                        "pendulum.json", "--episodes", "2"},
                                       folder.path());
  CAPTURE(collected.output);
  REQUIRE(collected.exit_code == 0);
  CHECK(has(collected.output, "2002 observations of 2 episodes"));
  const Outcome frozen = run_troupe({"check", "environment", "pendulum_swingup", "--set",
                                     "environment.normalization.mode=frozen", "--set",
                                     "environment.normalization.file=pendulum.json"},
                                    folder.path());
  CAPTURE(frozen.output);
  CHECK(frozen.exit_code == 0);
}

TEST_CASE("The example environment is learned from a plug-in") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "own.textproto")
      << read_text(kExamples / "own_environment.textproto");
  Program training({in_build("troupe"), "train", "own.textproto", "--json", "--set",
                    "environment.plugin=" + kPlugin, "--set", "environment.episode_log=episodes"},
                   folder.path());
  const int exit_code = training.wait();
  CAPTURE(training.output());
  REQUIRE(exit_code == 0);
  CHECK(mean_return(last_json(training.output())) > 60); // random actions get 15, the best 85
  const std::string log = read_text(folder.path() / "episodes");
  CHECK(std::count(log.begin(), log.end(), '\n') >= 60); // 8000 steps in episodes of up to 100
  CHECK(json::parse(log.substr(0, log.find('\n'))).at("environment") == "push_to_middle");
}

TEST_CASE("A plug-in beside its experiment file is found from any working directory, also when the "
          "run resumes") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "own/build");
  fs::create_directories(folder / "elsewhere");
  fs::create_symlink(kPlugin, folder / "own/build/libown_environment.so");
  std::ofstream(folder / "own/own.textproto") << read_text(kExamples / "own_environment.textproto");
  const auto outcome = [&](std::vector<std::string> words) {
    for (const char* more : {"--json", "--set", "evaluation.final_episodes=1"})
      words.emplace_back(more);
    const Outcome done = run_troupe(words, folder / "elsewhere");
    CAPTURE(done.output);
    REQUIRE(done.exit_code == 0);
    return last_json(done.output);
  };
  const json trained =
      outcome({"train", "../own/own.textproto", "--set", "stop.environment_steps=800"});
  const std::string run = trained.at("run");
  const json resumed = outcome({"resume", (folder / "elsewhere" / run).string(), "--processes",
                                "--set", "stop.environment_steps=1200"});
  CHECK(resumed.at("environment_steps").get<int>() >= 1200);
  CHECK(resumed.at("returns").size() == 1);
}

TEST_CASE("A program with the environment linked in trains it in separate processes") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "own.textproto")
      << read_text(kExamples / "own_environment.textproto");
  Program training({in_build("experiments/own_program"), "train", "own.textproto", "--processes",
                    "--json", "--set", "environment.plugin=", "--set",
                    "stop.environment_steps=1500", "--set", "evaluation.final_episodes=1"},
                   folder.path());
  const int exit_code = training.wait();
  CAPTURE(training.output());
  REQUIRE(exit_code == 0);
  CHECK(last_json(training.output()).at("returns").size() == 1);
}

TEST_CASE("A dictionary observation is refused before a run exists, and the error says what agents "
          "take") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "two.textproto")
      << "environment { task: \"pendulum_swingup\" observations: \"orientation\" observations: "
         "\"velocity\" }\n";
  const Outcome refused = run_troupe({"train", "two.textproto"}, folder.path());
  CAPTURE(refused.output);
  CHECK(refused.exit_code == 2);
  CHECK(has(refused.last_line, "environment.observations"));
  CHECK(has(refused.last_line, "agents take one array, or one picture and arrays of float32"));
  CHECK_FALSE(fs::exists(folder.path() / "runs"));
}
