// A policy on recorded episodes, before it plays: as a user asks for it.
#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/experiments/commands/small_run.hpp"
#include "tests/folders.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;

namespace {

/// A small run, and episodes of random actions in its environment.
struct RecordedRun : SmallRun {
  std::string run;

  RecordedRun() {
    Program program(train_small({"--json", "--set", "environment.time_limit=100"}), folder.path());
    REQUIRE(program.wait() == 0);
    run = only_run().string();
    record("random", {"--set", "environment.time_limit=100"});
  }
  void record(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"record", "small.textproto", "--random", "--episodes",
                                      "4",      "--out",           name};
    words.insert(words.end(), more.begin(), more.end());
    REQUIRE(run_troupe(words, folder.path()).exit_code == 0);
  }
  Outcome evaluate(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"evaluate", run, "--fit-updates", "20", "--fits", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return run_troupe(words, folder.path());
  }
  std::string refused(const std::vector<std::string>& more) const {
    const Outcome outcome = evaluate(more);
    CHECK(outcome.exit_code == 2);
    return outcome.last_line;
  }
};

} // namespace

TEST_CASE("A run is evaluated on recorded episodes, the same each time, and another recording is "
          "refused by name") {
  const RecordedRun place;
  const Outcome first = place.evaluate({"--on", "random", "--json"});
  CAPTURE(first.output);
  REQUIRE(first.exit_code == 0);
  const json made = last_json(first.output);
  CHECK(made.at("episodes") == 4);
  CHECK(made.at("steps") == 400);
  CHECK(made.at("time_limit") == 100);
  CHECK(made.at("recorded_policy") == "random");
  CHECK(made.at("discount") == 0.99); // the run's
  CHECK(made.at("members").size() == 2);
  CHECK(made.at("estimate").at("low") <= made.at("estimate").at("mean"));
  CHECK(made.at("estimate").at("mean") <= made.at("estimate").at("high"));
  CHECK(made.at("recorded").at("mean") <= made.at("recorded_undiscounted"));
  CHECK(made.at("choice_agreement").is_null());
  CHECK(made.at("action_distance") > 0);
  CHECK(last_json(place.evaluate({"--on", "random", "--json"}).output) == made);
  CHECK(last_json(place.evaluate({"--on", "random", "--explore", "--json"}).output) != made);
  const Outcome text = place.evaluate({"--on", "random", "--discount", "0.9"});
  CHECK(has(text.output, "fit 2 of 2"));
  CHECK(has(text.output, "by fitted Q evaluation, discount 0.9"));

  place.record("cartpole", {"--set", "environment.task=cartpole_balance"});
  CHECK(has(place.refused({"--on", "cartpole"}), "does not fit the experiment's environment"));
  place.record("twice", {"--set", "environment.action_repeat=2"});
  CHECK(
      has(place.refused({"--on", "twice"}), "environment.action_repeat is 1, in the recording 2"));
  place.record("long", {});
  CHECK(has(place.refused({"--on", "long"}), "the environment cuts them at 100"));
  CHECK(has(place.refused({"--on", "none"}), "is no recording"));
  CHECK(has(place.refused({"--on", "random", "--video", "x.mp4"}), "--on"));
  CHECK(has(place.refused({"--discount", "0.9"}), "--on"));
}
