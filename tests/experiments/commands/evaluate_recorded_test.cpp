// `troupe evaluate` of a policy on recorded episodes, before it plays.
#include "tests/experiments/commands/program.hpp"

#include <fstream>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/experiments/commands/small_run.hpp"
#include "tests/folders.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;

namespace {

/// A small run, and recorded episodes of random actions in its environment.
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

TEST_CASE("Evaluating a run on recorded episodes is reproducible, and a recording that does not "
          "fit is refused") {
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
  const json fitted = made.at("estimates").at("fitted_q");
  CHECK(fitted.at("low") <= fitted.at("mean"));
  CHECK(fitted.at("mean") <= fitted.at("high"));
  CHECK(made.at("estimates").size() == 1);
  CHECK(has(made.at("no_importance_sampling"), "deterministic and has no density"));
  CHECK(made.at("recorded").at("mean") <= made.at("recorded_undiscounted"));
  CHECK(made.at("choice_agreement").is_null());
  CHECK(made.at("action_distance") > 0);
  CHECK(last_json(place.evaluate({"--on", "random", "--json"}).output) == made);
  const json explored = last_json(place.evaluate({"--on", "random", "--explore", "--json"}).output);
  CHECK(explored.at("action_distance") != made.at("action_distance"));
  CHECK(explored.at("effective_episodes") <= 4);
  CHECK(has(explored.at("no_importance_sampling"), "effective episodes"));
  const Outcome text = place.evaluate({"--on", "random", "--discount", "0.9"});
  CHECK(has(text.output, "fit 2 of 2"));
  CHECK(has(text.output, "95 % interval, discount 0.9:"));

  REQUIRE(run_troupe({"record", "small.textproto", "--random", "--episodes", "1", "--out", "single",
                      "--set", "environment.time_limit=100"},
                     place.folder.path())
              .exit_code
          == 0);
  const Outcome single = place.evaluate({"--on", "single"});
  const std::size_t at = single.output.find("\n  recorded ");
  REQUIRE(at != std::string::npos);
  CHECK_FALSE(has(single.output.substr(at + 1, single.output.find('\n', at + 1) - at), " to "));

  place.record("cartpole", {"--set", "environment.task=cartpole_balance"});
  CHECK(has(place.refused({"--on", "cartpole"}), "does not fit the experiment's environment"));
  place.record("twice", {"--set", "environment.action_repeat=2"});
  CHECK(
      has(place.refused({"--on", "twice"}), "environment.action_repeat is 1; the recording has 2"));
  place.record("clipped", {"--set", "environment.action_clip=0.5"});
  CHECK(has(
      place.refused({"--on", "clipped"}),
      "environment.action_clip limits actions to 1; those of the recording are limited to 0.5"));
  place.record(
      "part", {"--set", "environment.action_clip=0.5", "--set", "environment.action_rescale=true"});
  CHECK(has(place.refused({"--on", "part"}), "in the recording it is within -0.5"));
  place.record("long", {});
  CHECK(has(place.refused({"--on", "long"}), "the environment cuts them at 100"));
  CHECK(has(place.refused({"--on", "none"}), "is not a recording"));
  CHECK(has(place.refused({"--on", "random", "--video", "x.mp4"}), "--on"));
  CHECK(has(place.refused({"--discount", "0.9"}), "--on"));
}

TEST_CASE("Off-policy estimates from another policy's episodes agree with the returns that the "
          "policy obtains") {
  const SmallRun place;
  std::ofstream(place.folder / "small.textproto") << R"(
environment { task: "CartPole-v1" time_limit: 30 }
dqn { layers: [16] batch_size: 16 epsilon_end: 0.5 epsilon_steps: 500 }
replay { minimum_items: 200 samples_per_insert: 4 }
actors { random_steps: 200 }
evaluation { period: 0 final_episodes: 1 video: false }
stop { environment_steps: 2000 }
deterministic: true
)";
  Program program(train_small({"--quiet"}), place.folder.path());
  REQUIRE(program.wait() == 0);
  const std::string run = place.only_run().string();
  const auto troupe = [&](std::vector<std::string> words) {
    Outcome outcome = run_troupe(std::move(words), place.folder.path());
    CAPTURE(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    return last_json(outcome.output);
  };
  troupe({"record", run, "--explore", "--episodes", "300", "--out", "half", "--json"});
  const std::vector<std::string> target{"--set", "dqn.epsilon_end=0.3"};
  const auto of_target = [&](std::vector<std::string> words) {
    words.insert(words.end(), target.begin(), target.end());
    return troupe(std::move(words));
  };
  of_target({"record", run, "--explore", "--episodes", "600", "--seed", "5", "--out", "played",
             "--json"});
  const auto evaluated = [&](const char* recording) {
    return of_target({"evaluate", run, "--on", recording, "--explore", "--json", "--discount",
                      "0.95", "--fits", "3", "--fit-updates", "500"});
  };
  const double truth = evaluated("played").at("recorded").at("mean");
  const json made = evaluated("half");
  CAPTURE(made.dump());
  CHECK(made.at("no_importance_sampling").is_null());
  CHECK(made.at("effective_episodes") > 20);
  CHECK(made.at("effective_episodes") < 300);
  REQUIRE(made.at("estimates").size() == 5);
  for (const auto& [name, estimate] : made.at("estimates").items()) {
    CAPTURE(name);
    const double low = estimate.at("low"), high = estimate.at("high");
    const double spare = (high - low) / 2; // one of twenty intervals may miss
    CHECK(low - spare <= truth);
    CHECK(truth <= high + spare);
  }
  const json robust = made.at("estimates").at("doubly_robust");
  CHECK(robust.at("mean") != made.at("recorded").at("mean"));
}

TEST_CASE("A policy with a memory gets weight 1 for every episode that it recorded itself") {
  const SmallRun place;
  std::ofstream(place.folder / "small.textproto") << R"(
environment { task: "CartPole-v1" time_limit: 30 }
r2d2 { layers: [16] lstm: 8 burn_in: 2 length: 4 period: 4 batch_size: 8 epsilon_end: 0.4 epsilon_steps: 200 epsilon_ladder: 0 }
replay { minimum_items: 50 samples_per_insert: 4 }
actors { random_steps: 100 }
evaluation { period: 0 final_episodes: 1 video: false }
stop { environment_steps: 600 }
deterministic: true
)";
  Program program(train_small({"--quiet"}), place.folder.path());
  REQUIRE(program.wait() == 0);
  const std::string run = place.only_run().string();
  REQUIRE(run_troupe({"record", run, "--explore", "--episodes", "20", "--out", "played"},
                     place.folder.path())
              .exit_code
          == 0);
  const Outcome outcome = run_troupe({"evaluate", run, "--on", "played", "--explore", "--json",
                                      "--fits", "2", "--fit-updates", "20"},
                                     place.folder.path());
  CAPTURE(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const json made = last_json(outcome.output);
  CHECK(made.at("effective_episodes") == doctest::Approx(20));
  CHECK(made.at("mean_weight") == doctest::Approx(1));
  CHECK(made.at("choice_agreement") < 1); // it draws again
  CHECK(made.at("estimates").at("importance_sampling").at("mean")
        == doctest::Approx(made.at("recorded").at("mean").get<double>()));
}
