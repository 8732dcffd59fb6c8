// Exporting a trained policy as a user does. export_checks.py compares the results.
#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/experiments/commands/small_run.hpp"
#include "tests/folders.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE(
    "A run's policy is exported and measured, and replaces only a policy with the same contract") {
  const SmallRun place;
  const fs::path log = place.folder / "episodes";
  Program program(train_small({"--json", "--set", "environment.episode_log=" + log.string()}),
                  place.folder.path());
  REQUIRE(program.wait() == 0);
  const std::string episodes = read_text(log);
  CHECK_FALSE(episodes.empty());
  const std::string run = place.only_run().string();
  const fs::path out = place.folder / "policy";
  const Outcome exported = run_troupe({"export", run, "--out", out.string(), "--samples", "200",
                                       "--evaluate", "1", "--weights", "int8", "--json"});
  CAPTURE(exported.output);
  REQUIRE(exported.exit_code == 0);
  const json made = last_json(exported.output);
  CHECK(made.at("task") == "pendulum_swingup");
  CHECK(made.at("agent") == "d4pg");
  CHECK(made.at("samples") == 200);
  CHECK(made.at("largest_difference").get<double>() < 1e-5);
  CHECK(made.at("mean_returns").size() == 3);
  CHECK(read_text(log) == episodes); // the log of the training
  for (const char* file : {"contract.json", "policy.onnx", "policy.hpp", "CMakeLists.txt",
                           "policy.safetensors", "samples.safetensors", "parity.cpp"})
    CHECK(fs::file_size(out / file) > 100);
  const json contract = json::parse(read_text(out / "contract.json"));
  CHECK(contract.at("actions")[0].at("name") == "torque");
  CHECK(contract.at("control_period_seconds") == 0.02);
  CHECK(contract.at("updates") == made.at("updates"));

  // A deployed policy is only replaced by one with the same contract.
  const fs::path next = place.folder / "next";
  const auto again = [&](const std::string& file) { // a slash at the end means the same folder
    return run_troupe({"export", run, "--out", next.string() + "/", "--samples", "16", "--format",
                       "onnx", "--contract", file});
  };
  std::string other = read_text(out / "contract.json");
  other.replace(other.find("\"torque\""), 8, "\"thrust\"");
  std::ofstream(place.folder / "other.json") << other;
  const Outcome refused = again((place.folder / "other.json").string());
  CHECK(refused.exit_code == 2);
  CHECK(has(refused.last_line, "actions[0].name: the policy has \"torque\", the other \"thrust\""));
  CHECK_FALSE(fs::exists(next));
  CHECK(again((out / "contract.json").string()).exit_code == 0);
  CHECK(fs::exists(next / "policy.onnx"));
  CHECK_FALSE(fs::exists(next / "policy.hpp"));

  const auto last_words = [&](std::vector<std::string> more, int exit_code) {
    std::vector<std::string> words{"export", run};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_troupe(words, place.folder.path());
    CHECK(outcome.exit_code == exit_code);
    return outcome.last_line;
  };
  CHECK(has(last_words({"--out", out.string()}, 2), "exists"));
  CHECK(has(last_words({"--checkpoint", "7"}, 2), "7"));
  CHECK(has(last_words({"--namespace", "my-policy"}, 2), "my-policy"));
  CHECK(has(last_words({"--weights", "int4"}, 2), "int4"));
  // Exporting a damaged checkpoint leaves no files behind.
  for (const auto& checkpoint : fs::directory_iterator(fs::path(run) / "checkpoints")) {
    const fs::path file = checkpoint.path() / "learner.safetensors";
    fs::resize_file(file, fs::file_size(file) / 2);
  }
  CHECK(has(last_words({"--out", (place.folder / "damaged").string()}, 1), "learner.safetensors"));
  CHECK_FALSE(fs::exists(place.folder / "damaged"));
}
