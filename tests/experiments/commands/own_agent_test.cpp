// The example agent, listed and trained from a plug-in as a user would.
#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

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

const std::string kAgentPlugin = in_build("libown_agent.so");

/// The example's experiment file in a folder, with the plug-in from the build.
struct Example {
  TemporaryFolder folder;

  Example() {
    std::ofstream(folder.path() / "own.textproto")
        << read_text(in_source("experiments/examples/own_agent/own_agent.textproto"));
  }
  std::vector<std::string> train(const std::vector<std::string>& more) const {
    std::vector<std::string> words{in_build("troupe"), "train", "own.textproto",
                                   "--json",           "--set", "agent.plugin=" + kAgentPlugin};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

} // namespace

TEST_CASE("The agents of a plug-in are listed") {
  const Outcome plain = run_troupe({"list", "agents", "--plugin", kAgentPlugin});
  CHECK(plain.exit_code == 0);
  CHECK(has(plain.output, "own_td3"));
  CHECK_FALSE(has(plain.output, "d4pg"));
  const json all =
      json::parse(run_troupe({"list", "agents", "--plugin", kAgentPlugin, "--json"}).output);
  CHECK(all.at(0).at("observations") == json{"states"});
  CHECK(all.at(0).at("actions") == "continuous");
  CHECK(all.at(0).at("asynchronous") == true);
  const Outcome none = run_troupe({"list", "agents", "--plugin", "libnone.so"});
  CHECK(none.exit_code == 2);
  CHECK(has(none.last_line, "libnone.so is not a file"));
  CHECK(has(run_troupe({"list", "agents", "--plugin", in_build("libown_environment.so")}).last_line,
            "has no entry point troupe_agents, so it is not a plug-in of agents"));
  CHECK(run_troupe({"list", "keys", "--plugin", kAgentPlugin}).exit_code == 2);
}

TEST_CASE("An agent from a plug-in trains in separate processes, writes its metrics and resumes") {
  const Example example;
  Program training(example.train({"--processes", "--set", "stop.environment_steps=1500", "--set",
                                  "evaluation.final_episodes=1"}),
                   example.folder.path());
  const int exit_code = training.wait();
  CAPTURE(training.output());
  REQUIRE(exit_code == 0);
  const json summary = last_json(training.output());
  CHECK(summary.at("returns").size() == 1);
  CHECK(summary.at("updates").get<int>() > 500);
  const fs::path run = summary.at("run").get<std::string>();
  const std::string metrics = read_text(run / "metrics.csv");
  CHECK(has(metrics.substr(0, metrics.find('\n')), "q_mean"));
  Program resumed({in_build("troupe"), "resume", run.string(), "--json", "--set",
                   "stop.environment_steps=2500"});
  REQUIRE(resumed.wait() == 0);
  CHECK(last_json(resumed.output()).at("updates").get<int>() > summary.at("updates").get<int>());
}

TEST_CASE("Two runs of a plug-in's agent with equal settings are equal bit for bit") {
  std::string parameters[2];
  for (std::string& made : parameters) {
    const Example example;
    Program training(
        example.train({"--set", "deterministic=true", "--set", "stop.environment_steps=1000",
                       "--set", "evaluation.final_episodes=1"}),
        example.folder.path());
    REQUIRE(training.wait() == 0);
    const json summary = last_json(training.output());
    made = read_text(fs::path(summary.at("checkpoint").get<std::string>()) / "learner.safetensors");
    CHECK(made.size() > 1000);
  }
  CHECK(parameters[0] == parameters[1]);
}

TEST_CASE("Settings that a plug-in's agent does not support are refused before a run exists") {
  const Example example;
  const auto refused = [&](const std::vector<std::string>& words, const char* part) {
    Program program(example.train(words), example.folder.path());
    const int exit_code = program.wait();
    CAPTURE(program.output());
    CHECK(exit_code == 2);
    CHECK(has(program.output(), part));
    CHECK_FALSE(fs::exists(example.folder.path() / "runs"));
  };
  refused({"--set", "agent.plugin=libnone.so"}, "libnone.so is not a file");
  refused({"--set", "agent.name=own_td4"}, "'own_td4' is not in plug-in");
  refused({"--set", "agent.options=width=0"}, "option width is 0; it must be at least 1");
  refused({"--set", "agent.options=breadth=3"}, "has no option 'breadth'");
  refused({"--set", "agent.options=width"}, "write key=value");
  refused({"--set", "td3.batch_size=8"}, "is given together with td3");
  refused({"--set", "environment.task=pendulum_swingup", "--set", "environment.pixels.height=64"},
          "this agent learns from states");
  std::ofstream(example.folder.path() / "own.textproto")
      << "environment { task: \"Pendulum-v1\" }\nagent {\n  name: \"own_td3\" options: "
         "\"breadth=3\"\n}\n";
  refused({}, "own.textproto:3:19: agent.options are refused: ");
}
