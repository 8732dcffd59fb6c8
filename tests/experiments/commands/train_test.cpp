#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "experiments/report/curve.hpp"
#include "experiments/report/video.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "tests/experiments/commands/small_run.hpp"
#include "tests/folders.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE(
    "A run writes its metrics, log, report and checkpoints, and its policy can be evaluated") {
  const SmallRun place;
  Program program(train_small({"--json"}), place.folder.path());
  const int exit_code = program.wait();
  CAPTURE(program.output());
  REQUIRE(exit_code == 0);
  const json summary = last_json(program.output());
  CHECK(summary.at("environment_steps").get<int>() >= 2500);
  CHECK(summary.at("returns").size() == 2);
  CHECK(summary.at("error") == "");
  const fs::path run = place.only_run();
  for (const char* file : {"config.textproto", "metrics.csv", "metrics.jsonl", "log.txt",
                           "report.html", "curve.svg"}) {
    CAPTURE(file);
    CHECK(fs::file_size(run / file) > 100);
  }
  CHECK(read_curve(run / "metrics.csv").size() >= 2);
  CHECK(complete_checkpoints(run).size() >= 1);

  const Outcome played = run_troupe({"evaluate", run.string(), "--episodes", "2", "--json"});
  CAPTURE(played.output);
  REQUIRE(played.exit_code == 0);
  // The same parameters and seeds as the run's own last evaluation.
  CHECK(last_json(played.output).at("returns") == summary.at("returns"));

  const Outcome bad = run_troupe({"evaluate", run.string(), "--step", "1"});
  CHECK(bad.exit_code == 2);
  CHECK(has(bad.last_line, "has no complete checkpoint 1; there are "));
}

TEST_CASE("The policy of a run with local SGD, whose checkpoints say more, can be evaluated") {
  const SmallRun place;
  Program program(train_small({"--json", "--set", "learner.replicas=2", "--set",
                               "learner.strategy=local_sgd local_steps=8"}),
                  place.folder.path());
  const int exit_code = program.wait();
  CAPTURE(program.output());
  REQUIRE(exit_code == 0);
  const Outcome played = run_troupe({"evaluate", place.only_run().string(), "--episodes", "2"});
  CAPTURE(played.output);
  CHECK(played.exit_code == 0);
}

TEST_CASE("A first signal stops a run with a checkpoint and exit code 0, and resume continues it") {
  const SmallRun place;
  Program program(train_small({"--set", "stop.environment_steps=100000000"}), place.folder.path());
  REQUIRE(program.read_until([](const std::string& text) { return has(text, "evaluation: "); }));
  program.send(SIGINT);
  const int exit_code = program.wait();
  CAPTURE(program.output());
  REQUIRE(exit_code == 0);
  CHECK(has(program.output(), "stopping after a checkpoint"));
  CHECK(has(program.output(), "interrupted"));
  const fs::path run = place.only_run();
  const auto before = find_checkpoint(run).updates;
  CHECK(before > 0);

  Program resumed({in_build("troupe"), "resume", run.string(), "--json"});
  // The first evaluation may have been due when the run was stopped; before a second one there are
  // updates.
  REQUIRE(resumed.read_until([](const std::string& text) {
    return text.find("evaluation: ", text.find("evaluation: ") + 1) != std::string::npos;
  }));
  resumed.send(SIGTERM);
  REQUIRE(resumed.wait() == 0);
  CHECK(last_json(resumed.output()).at("updates").get<std::int64_t>() > before);
}

TEST_CASE("A second signal ends a run at once with exit code 130") {
  const SmallRun place;
  Program program(train_small({"--set", "stop.environment_steps=100000000"}), place.folder.path());
  REQUIRE(program.read_until([](const std::string& text) { return has(text, "steps/s"); }));
  program.send(SIGSTOP); // so that the run cannot end between the two signals
  program.send(SIGINT);
  program.send(SIGTERM);
  program.send(SIGCONT);
  CHECK(program.wait() == 130);
  CAPTURE(program.output());
  CHECK(has(program.output(), "stopping after a checkpoint"));
  CHECK(has(program.output(), "stopped by a second signal"));
}

TEST_CASE("A truncated checkpoint is refused by name and left unchanged") {
  const SmallRun place;
  Program program(train_small({}), place.folder.path());
  REQUIRE(program.wait() == 0);
  const fs::path file = find_checkpoint(place.only_run()).path / "learner.safetensors";
  const auto size = fs::file_size(file) / 2;
  fs::resize_file(file, size);
  for (const char* command : {"evaluate", "resume"}) {
    CAPTURE(command);
    const Outcome outcome = run_troupe({command, place.only_run().string()});
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 1);
    CHECK(has(outcome.last_line, "learner.safetensors"));
    CHECK(fs::file_size(file) == size);
  }
}

TEST_CASE(
    "A run continues from the previous checkpoint if the newest one is corrupt, and reports it") {
  const SmallRun place;
  Program program(train_small({}), place.folder.path());
  REQUIRE(program.wait() == 0);
  for (const char* part : {"learner.safetensors", "replay/shard-0/segment-1"}) {
    const std::string name = part;
    CAPTURE(name);
    const fs::path sound = find_checkpoint(place.only_run()).path;
    const fs::path newer = sound.parent_path() / "999999";
    fs::copy(sound, newer, fs::copy_options::recursive);
    std::string bytes = read_text(newer / part);
    bytes[bytes.size() / 2] ^= 1;
    std::ofstream(newer / part, std::ios::binary) << bytes;
    const Outcome outcome = run_troupe({"resume", place.only_run().string()});
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(has(outcome.output, part));
    CHECK(has(outcome.output, "continuing from the one before it"));
    CHECK(has(outcome.output, "999999.damaged"));
    CHECK(fs::exists(newer.string() + ".damaged/manifest.json"));
    CHECK(find_checkpoint(place.only_run()).updates < 999'999);
  }
}

TEST_CASE("With --processes, a run does all its steps, and no process outlives it") {
  const SmallRun place;
  Program program(train_small({"--processes", "--json"}), place.folder.path());
  const int exit_code = program.wait(); // reads to the end, when no child holds the pipe any more
  CAPTURE(program.output());
  REQUIRE(exit_code == 0);
  CHECK_FALSE(has(program.output(), "***")); // CAF's warnings about its settings
  const json summary = last_json(program.output());
  CHECK(summary.at("returns").size() == 2);
  CHECK(summary.at("environment_steps").get<int>() >= 2500);
  CHECK(summary.at("updates").get<int>() > 0);
  CHECK(summary.at("error") == "");
}

TEST_CASE("With --processes, the agents train, write their metrics and evaluate their policy") {
  const TemporaryFolder folder;
  const std::string pendulum = "environment { task: \"Pendulum-v1\" }\n";
  const std::string off_policy = "replay { minimum_items: 100 samples_per_insert: 4 }\n"
                                 "actors { environment: 1 random_steps: 100 }\n"
                                 "stop { environment_steps: 300 }\n";
  struct Case {
    std::string agent, text;
    const char* metric;
  };
  for (const Case& c : std::vector<Case>{
           {"td3",
            pendulum + off_policy
                + "td3 { policy_layers: [16] critic_layers: [16] batch_size: 16 }",
            "critic_loss"},
           {"sac",
            pendulum + off_policy
                + "sac { policy_layers: [16] critic_layers: [16] batch_size: 16 }",
            "temperature"},
           {"drqv2",
            "environment { task: \"pendulum_swingup\" time_limit: 100\n"
            "  pixels { height: 20 width: 20 grey: true effects: false } }\n"
                + off_policy
                + "drqv2 { policy_layers: [16] critic_layers: [16] encoder_channels: 4\n"
                  "  feature_size: 8 batch_size: 8 steps_per_update: 2 }",
            "critic_loss"},
           {"impala",
            pendulum
                + "actors { environment: 1 }\nstop { environment_steps: 1000 }\n"
                  "impala { layers: [16] rollout: 4 batch_size: 8 }",
            "sample_age"},
           {"r2d2",
            "environment { task: \"CartPole-v1\" }\n"
            "replay { minimum_items: 20 samples_per_insert: 8 }\n"
            "actors { environment: 1 random_steps: 100 }\nstop { environment_steps: 300 }\n"
            "r2d2 { layers: [16] lstm: 8 burn_in: 1 length: 4 period: 4 batch_size: 8 }",
            "critic_loss"},
           {"bc",
            pendulum + "recording { path: \"random\" updates: 50 }\n"
                + "bc { layers: [16] batch_size: 16 }",
            "loss"}}) {
    CAPTURE(c.agent);
    std::ofstream(folder / (c.agent + ".textproto"))
        << c.text << "\nevaluation { period: 0 final_episodes: 1 video: false }\n";
    if (c.agent == "bc") {
      const Outcome recorded =
          run_troupe({"record", "td3.textproto", "--random", "--steps", "200", "--out", "random"},
                     folder.path());
      CAPTURE(recorded.output);
      REQUIRE(recorded.exit_code == 0);
    }
    Program program({in_build("troupe"), "train", c.agent + ".textproto", "--processes", "--json"},
                    folder.path());
    const int exit_code = program.wait();
    CAPTURE(program.output());
    REQUIRE(exit_code == 0);
    const json summary = last_json(program.output());
    CHECK(summary.at("error") == "");
    CHECK(summary.at("updates").get<int>() > 10);
    CHECK(summary.at("returns").size() == 1);
    const std::string metrics =
        read_text(fs::path(summary.at("run").get<std::string>()) / "metrics.csv");
    CHECK(has(metrics.substr(0, metrics.find('\n')), c.metric));
  }
}

TEST_CASE("On a terminal, only the progress line has escape sequences, and no output is coloured") {
  const SmallRun place;
  const auto on_terminal = [&](const std::string& words) {
    Program program({"script", "--quiet", "--return", "--command", in_build("troupe") + " " + words,
                     "/dev/null"},
                    place.folder.path());
    CHECK(program.wait() == 0);
    return program.output();
  };
  const std::string redraw = "\x1b[K"; // erases the rest of the line
  int redraws = 0;
  const std::string training = on_terminal("train small.textproto");
  CAPTURE(training);
  for (auto at = training.find('\x1b'); at != std::string::npos;
       at = training.find('\x1b', at + 1)) {
    CHECK(training.substr(at, redraw.size()) == redraw);
    ++redraws;
  }
  CHECK(redraws > 0);
  for (const char* words : {"--help", "train --help", "list experiments", "evaluate"}) {
    CAPTURE(words);
    const std::string output = on_terminal(words);
    CHECK(output.size() > 20);
    CHECK_FALSE(has(output, "\x1b"));
  }
}
