// Recording episodes and learning from them, as a user does.
#include "tests/experiments/commands/program.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "replay/recordings/recording.hpp"
#include "tests/experiments/commands/small_run.hpp"
#include "tests/folders.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE("Episodes of random actions are recorded, shown, checked and used for training") {
  const SmallRun place;
  const fs::path out = place.folder / "random";
  const Outcome recorded =
      run_troupe({"record", "small.textproto", "--random", "--episodes", "3", "--environments", "2",
                  "--out", out.string(), "--json", "--set", "environment.time_limit=100"},
                 place.folder.path());
  CAPTURE(recorded.output);
  REQUIRE(recorded.exit_code == 0);
  const json made = last_json(recorded.output);
  CHECK(made.at("episodes") == 3);
  CHECK(made.at("steps") == 300);
  CHECK(made.at("about").at("policy") == "random");
  CHECK(made.at("log_probability") == true);
  CHECK(replay::Recording(out).read(2).log_probability(5) == doctest::Approx(-std::log(2)));
  CHECK(made.at("about").at("task") == "pendulum_swingup");
  const Outcome info = run_troupe({"dataset", "info", out.string(), "--json"});
  CHECK(last_json(info.output) == made);
  CHECK(has(run_troupe({"dataset", "check", out.string()}).output, "all are good"));

  const Outcome again = run_troupe(
      {"record", "small.textproto", "--random", "--episodes", "1", "--out", out.string()},
      place.folder.path());
  CHECK(again.exit_code == 2);
  CHECK(has(again.last_line, "exists"));

  std::ofstream(place.folder / "clone.textproto") << R"(
environment { task: "pendulum_swingup" }
bc { layers: [16] batch_size: 16 }
evaluation { period: 0 final_episodes: 1 video: false }
recording { path: "random" updates: 200 }
)";
  const Outcome trained =
      run_troupe({"train", "clone.textproto", "--json", "--quiet"}, place.folder.path());
  CAPTURE(trained.output);
  REQUIRE(trained.exit_code == 0);
  const json summary = last_json(trained.output);
  CHECK(summary.at("updates") == 200);
  CHECK(summary.at("returns").size() == 1);
  CHECK(has(read_text(fs::path(summary.at("run").get<std::string>()) / "metrics.csv"), "loss"));
}

TEST_CASE(
    "Recording a run's policy writes the exact number of steps and the policy's description") {
  const SmallRun place;
  Program program(train_small({"--json"}), place.folder.path());
  REQUIRE(program.wait() == 0);
  const fs::path run = place.only_run();
  const fs::path out = place.folder / "played";
  const Outcome recorded = run_troupe(
      {"record", run.string(), "--steps", "1500", "--explore", "--out", out.string(), "--json"});
  CAPTURE(recorded.output);
  REQUIRE(recorded.exit_code == 0);
  const replay::Recording recording(out);
  CHECK(recording.steps() == 1500); // the second episode of 1000 steps is truncated
  REQUIRE(recording.episodes().size() == 2);
  CHECK_FALSE(recording.episodes()[1].terminated);
  CHECK(recording.spec().about.at("policy") == "exploring");
  REQUIRE(recording.spec().log_probability);
  const replay::Episode played = recording.read(0);
  CHECK(played.log_probability(1) != played.log_probability(2));
  const auto other = place.folder / "seeded";
  REQUIRE(run_troupe({"record", run.string(), "--steps", "10", "--seed", "9", "--out",
                      other.string() + "/"})
              .exit_code
          == 0);
  CHECK(replay::Recording(other).spec().about.at("policy") == "best actions");
  CHECK_FALSE(replay::Recording(other).spec().log_probability); // deterministic continuous actions
  CHECK(replay::Recording(other).spec().about.at("seed") == "9");
}

TEST_CASE("A recorded policy explores as after the random steps of its run, also when it is "
          "evaluated on the recording") {
  const SmallRun place;
  std::ofstream(place.folder / "small.textproto") << R"(
environment { task: "CartPole-v1" time_limit: 30 }
dqn { layers: [16] batch_size: 16 epsilon_start: 1 epsilon_end: 0.05 epsilon_steps: 2000 }
replay { minimum_items: 200 samples_per_insert: 4 }
actors { random_steps: 2000 }
evaluation { period: 0 final_episodes: 1 video: false }
stop { environment_steps: 2000 }
deterministic: true
)";
  Program program(train_small({"--quiet"}), place.folder.path());
  REQUIRE(program.wait() == 0);
  const std::string run = place.only_run().string();
  const fs::path out = place.folder / "played";
  REQUIRE(
      run_troupe({"record", run, "--explore", "--episodes", "5", "--out", out.string()}).exit_code
      == 0);
  const replay::Episode played = replay::Recording(out).read(0);
  for (std::int64_t step = 1; step <= played.steps(); ++step) // every action is almost random
    CHECK(played.log_probability(step) == doctest::Approx(-std::log(2)).epsilon(0.1));
  const Outcome outcome = run_troupe({"evaluate", run, "--on", out.string(), "--explore", "--json",
                                      "--fits", "2", "--fit-updates", "20"});
  CAPTURE(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  CHECK(last_json(outcome.output).at("effective_episodes") > 4);
}

TEST_CASE(
    "A recording has the bounds that actions reach, and the limit to which they are clipped") {
  const SmallRun place;
  const auto recorded = [&](const std::string& name, const std::string& task,
                            const std::vector<std::string>& keys) {
    std::vector<std::string> words{
        "record", "small.textproto",         "--random", "--steps", "3", "--out", name,
        "--set",  "environment.task=" + task};
    for (const std::string& key : keys) {
      words.emplace_back("--set");
      words.push_back("environment." + key);
    }
    const Outcome outcome = run_troupe(words, place.folder.path());
    CAPTURE(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    return replay::Recording(place.folder / name).spec();
  };
  using Numbers = std::vector<double>;
  const auto clipped = recorded("clipped", "Pendulum-v1", {"action_clip=0.5"});
  CHECK(clipped.action_minimum == Numbers{-2});
  CHECK(clipped.about.at("action_clip") == "0.5");
  const auto rescaled =
      recorded("rescaled", "Pendulum-v1", {"action_clip=0.5", "action_rescale=true"});
  CHECK(rescaled.action_minimum == Numbers{-1});
  CHECK(rescaled.action_maximum == Numbers{1});
  CHECK(rescaled.about.at("action_clip") == "1");
  const auto unbounded = recorded("unbounded", "lqr_lqr_2_1", {});
  CHECK(unbounded.action_maximum == Numbers{INFINITY});
  const auto part = recorded("part", "lqr_lqr_2_1", {"action_clip=0.5", "action_rescale=true"});
  CHECK(part.action_maximum == Numbers{0.5});
}

TEST_CASE("A signal ends a recording and keeps the finished episodes") {
  const SmallRun place;
  const fs::path out = place.folder / "random";
  Program program({in_build("troupe"), "record", "small.textproto", "--random", "--steps",
                   "100000000000", "--out", out.string()},
                  place.folder.path());
  REQUIRE(program.read_until([](const std::string& text) { return has(text, "episode 2"); }));
  program.send(SIGINT);
  CHECK(program.wait() == 0);
  CHECK(replay::Recording(out).episodes().size() >= 2);
  CHECK_FALSE(fs::exists(out.string() + ".partial"));
}

TEST_CASE(
    "Invalid recordings and training on a missing one are refused and leave no files behind") {
  const SmallRun place;
  const auto refused = [&](std::vector<std::string> words) {
    const Outcome outcome = run_troupe(std::move(words), place.folder.path());
    CHECK(outcome.exit_code == 2);
    return outcome.last_line;
  };
  CHECK(has(refused({"record", "small.textproto", "--out", "x", "--episodes", "1"}),
            "config.textproto"));
  CHECK(has(refused({"record", "small.textproto", "--random", "--out", "x"}), "--episodes"));
  CHECK(
      refused({"record", "small.textproto", "--random", "--explore", "--out", "x", "--steps", "1"})
      != "");
  CHECK_FALSE(fs::exists(place.folder / "x"));
  CHECK(has(refused({"train", "td3_recorded_half_cheetah", "--set", "recording.path=none"}),
            "is not a recording"));
  CHECK(has(refused({"train", "small.textproto", "--set", "recording.path=none"}),
            "has no environment actors: remove it"));
  CHECK_FALSE(fs::exists(place.folder / "runs"));
}
