#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <map>

#include "experiments/report/video.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

TEST_CASE("A run from pixels ends with a video of the trained agent, and evaluate records another "
          "on request") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "film.textproto") << R"(
environment { task: "cartpole_balance" pixels { height: 32 width: 32 grey: true effects: false } frame_stack: 2 action_repeat: 8 }
replay { minimum_items: 100 samples_per_insert: 4 }
d4pg { policy_layers: [16] critic_layers: [16] batch_size: 16 encoder_channels: 4 }
actors { random_steps: 100 }
evaluation { period: 0 final_episodes: 1 }
stop { environment_steps: 3000 }
)";
  const Outcome trained = run_troupe({"train", "film.textproto"}, folder.path());
  CAPTURE(trained.output);
  REQUIRE(trained.exit_code == 0);
  fs::path run;
  for (const auto& entry : fs::directory_iterator(folder.path() / "runs/film")) {
    run = entry.path();
  }
  std::map<std::string, VideoInfo> videos;
  for (const auto& entry : fs::directory_iterator(run / "videos")) {
    videos[entry.path().extension()] = read_video(entry.path());
  }
  REQUIRE(videos.size() == 3);
  CHECK(videos[".mp4"].width == 480);
  CHECK(videos[".mp4"].frames == 126); // the beginning, and an episode of 1000 steps in steps of 8
  CHECK(videos[".gif"].width == 240);
  CHECK(videos[".gif"].frames == 42); // every third
  CHECK(videos[".png"].width == 480);
  for (const char* film : {".mp4", ".gif"}) {
    CHECK(videos[film].seconds == doctest::Approx(10).epsilon(0.02)); // in real time
    CHECK(videos[film].mean_blue > 5);                                // not black
  }
  std::string events;
  for (const auto& entry : fs::directory_iterator(run)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      events += read_text(entry.path());
    }
  }
  for (const char* part : {"evaluation/video", "evaluation/picture", "_hparams_/session_start_info",
                           "actors.random_steps", "_hparams_/session_end_info"}) {
    CHECK_MESSAGE(events.find(part) != std::string::npos, part);
  }
  const Outcome again = run_troupe({"evaluate", run.string(), "--episodes", "1", "--size", "64",
                                    "--video", "again.mp4", "--picture", "again.png"},
                                   folder.path());
  CAPTURE(again.output);
  REQUIRE(again.exit_code == 0);
  CHECK(read_video(folder.path() / "again.mp4").width == 64);
  CHECK(fs::file_size(folder.path() / "again.png") > 100);

  const auto played_with = [&](const std::string& pair) {
    return run_troupe({"evaluate", run.string(), "--episodes", "1", "--set", pair}, folder.path());
  };
  const Outcome other = played_with("environment.pixels.effects=true");
  CAPTURE(other.output);
  CHECK(other.exit_code == 0);
  const Outcome refused = played_with("environment.pixels.renderer=CHALK");
  CHECK(refused.exit_code == 2);
  CHECK(refused.output.find("environment.pixels.renderer") != std::string::npos);
}

TEST_CASE("Without FFmpeg, a run warns once and trains to its end") {
  const TemporaryFolder folder;
  const fs::path program = folder / "troupe";
  fs::copy_file(in_build("troupe"), program);
  std::ofstream(folder / "libtroupe_video.so") << "no library"; // found first: beside the program
  std::ofstream(folder / "short.textproto") << R"(
environment { task: "cartpole_balance" }
replay { minimum_items: 100 samples_per_insert: 4 }
d4pg { policy_layers: [16] critic_layers: [16] batch_size: 16 }
actors { random_steps: 100 }
evaluation { period: 0 final_episodes: 1 }
stop { environment_steps: 1000 }
)";
  Program run({program.string(), "train", "short.textproto"}, folder.path());
  const int exit_code = run.wait();
  CAPTURE(run.output());
  CHECK(exit_code == 0);
  const std::string warning = "no video: ";
  const std::size_t first = run.output().find(warning);
  REQUIRE(first != std::string::npos);
  CHECK(run.output().find("install FFmpeg's libraries", first) != std::string::npos);
  CHECK(run.output().find(warning, first + 1) == std::string::npos);
}
