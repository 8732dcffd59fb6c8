// The agent of the guide "Write an agent"; guide_test.py follows the page itself.
#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

const fs::path kExample = in_source("experiments/examples/own_dqn");

Outcome train(const TemporaryFolder& folder, const std::vector<std::string>& more) {
  std::ofstream(folder.path() / "own_dqn.textproto") << read_text(kExample / "own_dqn.textproto");
  std::vector<std::string> words{"train", "own_dqn.textproto", "--json", "--set",
                                 "agent.plugin=" + in_build("libown_dqn.so")};
  words.insert(words.end(), more.begin(), more.end());
  return run_troupe(words, folder.path());
}

} // namespace

TEST_CASE("The guide's agent is a single file of at most 250 lines") {
  const std::string text = read_text(kExample / "own_dqn.cpp");
  CHECK(std::count(text.begin(), text.end(), '\n') <= 250);
}

TEST_CASE("A resumed run of the guide's agent equals an uninterrupted one bit for bit") {
  const TemporaryFolder whole, parts;
  const auto steps = [](int count) {
    return std::vector<std::string>{"--set", "deterministic=true", "--set",
                                    "stop.environment_steps=" + std::to_string(count)};
  };
  const Outcome first = train(whole, steps(2400));
  CAPTURE(first.output);
  REQUIRE(first.exit_code == 0);
  const Outcome half = train(parts, steps(1600));
  REQUIRE(half.exit_code == 0);
  const Outcome second = run_troupe({"resume", last_json(half.output).at("run").get<std::string>(),
                                     "--json", "--set", "stop.environment_steps=2400"},
                                    parts.path());
  CAPTURE(second.output);
  REQUIRE(second.exit_code == 0);
  CHECK(last_json(first.output).at("updates").get<int>() > 300);
  const auto parameters = [](const Outcome& outcome) {
    return read_text(fs::path(last_json(outcome.output).at("checkpoint").get<std::string>())
                     / "learner.safetensors");
  };
  CHECK(parameters(first).size() > 1000);
  CHECK(parameters(first) == parameters(second));
  const Outcome exported =
      run_troupe({"export", last_json(first.output).at("run").get<std::string>()}, whole.path());
  CHECK(exported.exit_code == 2);
  CHECK(has(exported.last_line, "agent 'own_dqn' does not describe its policy"));
}

TEST_CASE("Options that the guide's agent does not support are refused before a run exists") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::vector<std::string>& words, const char* part) {
    const Outcome outcome = train(folder, words);
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(has(outcome.output, part));
    CHECK_FALSE(fs::exists(folder.path() / "runs"));
  };
  refused({"--set", "agent.options=width=0"}, "option width is 0; it must be from 1 to 1000000000");
  refused({"--set", "agent.options=epsilon_end=1.5"},
          "option epsilon_end is 1.5; it must be from 0 to 1");
  refused({"--set", "agent.options=widths=3"}, "has no option 'widths'");
}
