#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/config/config.hpp"
#include "experiments/report/curve.hpp"
#include "experiments/report/progress_line.hpp"
#include "experiments/report/summary.hpp"
#include "experiments/run_folder/clock.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace actors = troupe::actors;

namespace {

actors::Progress half_way() {
  actors::Progress p;
  p.environment_steps = 50'000;
  p.agent_steps = 6250;
  p.updates = 3000;
  p.frames = 6250;
  p.training_seconds = 100;
  p.processor_seconds = 200;
  p.environment_steps_per_second = 500;
  p.updates_per_second = 30;
  p.frames_per_second = 62.5;
  p.episode_return = 321.5;
  p.inserts = 6000;
  p.samples = 384'000;
  p.seconds = {{"learner.update", 75},
               {"learner.sample", 25},
               {"learner.publish", 0},
               {"environment.step", 100}};
  return p;
}

const actors::RunConfig::Stop kStop{.environment_steps = 100'000, .minutes = 0};

std::string printed(bool terminal, const std::function<void(ProgressPrinter&)>& story) {
  const TemporaryFolder folder;
  std::FILE* out = std::fopen((folder.path() / "screen").c_str(), "w");
  {
    ProgressPrinter printer(out, terminal, 60);
    story(printer);
  }
  std::fclose(out);
  return read_text(folder.path() / "screen");
}

} // namespace

TEST_CASE("A progress line has steps, frames/s, updates/s, return and time left") {
  CHECK(progress_text(half_way(), kStop, 400.0, 200)
        == "50.0k/100.0k steps | 500 steps/s | 62.5 frames/s | 3000 updates | 30.0 updates/s | "
           "return "
           "322 | evaluation 400 | 1 min 40 s left");
}

TEST_CASE("A progress line is never wider than the terminal and starts with the steps") {
  for (std::size_t width = 0; width < 140; ++width) {
    const std::string text = progress_text(half_way(), kStop, 400.0, width);
    CHECK(text.size() <= width);
    CHECK(text.substr(0, 5) == std::string("50.0k").substr(0, std::min<std::size_t>(width, 5)));
  }
}

TEST_CASE("The time left is that of the nearest limit and is unknown before the first step") {
  CHECK(seconds_left(half_way(), kStop) == doctest::Approx(100));
  CHECK(seconds_left(half_way(), {.environment_steps = 100'000, .minutes = 2})
        == doctest::Approx(20));
  CHECK(seconds_left(half_way(), {.environment_steps = 10, .minutes = 0}) == 0);
  CHECK(std::isnan(seconds_left({}, kStop)));
  CHECK(progress_text({}, kStop, {}, 200).find("? left") != std::string::npos);
}

TEST_CASE("On a terminal, the progress line is redrawn in place below the messages") {
  const std::string text = printed(true, [](ProgressPrinter& printer) {
    printer.show(half_way(), kStop, {});
    printer.line("a message");
    printer.show(half_way(), kStop, {});
  });
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  CHECK(text.find("\r\x1b[Ka message\n") != std::string::npos);
  CHECK(text.starts_with("\r50.0k"));
  CHECK(text.ends_with("\x1b[K\n"));
}

TEST_CASE("In a pipe, a plain line is printed every ten seconds of training") {
  const std::string text = printed(false, [](ProgressPrinter& printer) {
    actors::Progress p = half_way();
    for (p.training_seconds = 0; p.training_seconds < 25; p.training_seconds += 0.5) {
      printer.show(p, kStop, {});
    }
  });
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
  CHECK(text.find('\r') == std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("A summary has the task, return, steps, rates, folder, video and time per stage") {
  const Experiment experiment = parse_experiment("environment { task: \"cartpole_balance\" }", "x");
  Finished finished{
      .folder = "runs/x/now", .video = "runs/x/now/videos/1.mp4", .wall_seconds = 130};
  finished.result.progress = half_way();
  finished.result.evaluation.returns = {900, 950, 1000};
  const std::string text = summary_text(summarise(experiment, finished));
  for (const std::string part :
       {"task                        cartpole_balance from states\n",
        "return                      950.0 (mean of 3 episodes, 900.0 to 1000.0)\n",
        "50,000 environment steps, 6,250 agent steps",
        "1 min 40 s of training, 2 min 10 s in all, 3 min 20 s of processors",
        "500 environment steps/s, 62.5 frames/s, 60.0 inserts/s, 3840 samples/s, 30.0 updates/s",
        "time of learner actors      update 75.0 s (75 %), sample 25.0 s (25 %)\n",
        "time of environment actors  step 100.0 s (100 %)\n",
        "run                         runs/x/now\n",
        "video                       runs/x/now/videos/1.mp4\n"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  finished.result.interrupted = true;
  CHECK(summary_text(summarise(experiment, finished)).find("troupe resume runs/x/now")
        != std::string::npos);
}

TEST_CASE(
    "A report is self-contained, without scripts or external addresses, and escapes all text") {
  Experiment experiment = parse_experiment("environment { task: \"cartpole_balance\" }", "x",
                                           {"environment.models=<script>&\""});
  const std::string html = report_html(experiment, {{"task", "<b>"}},
                                       curve_svg({{1, 2, 1, 3}}, "a <title>"), "videos/1.mp4");
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("<b>") == std::string::npos);
  CHECK(html.find("a &lt;title&gt;") != std::string::npos);
  CHECK(html.find("https://") == std::string::npos);
  CHECK(html.find("src=\"videos/1.mp4\"") != std::string::npos);
  CHECK(html.find("samples_per_insert: 32") != std::string::npos);
}

TEST_CASE("A curve is drawn without NaN or infinity whatever its numbers") {
  const double huge = 1e300;
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& curve :
       std::vector<std::vector<CurvePoint>>{{},
                                            {{0, 0, 0, 0}},
                                            {{5, -3, -4, -2}, {9, 1000, 900, 1100}},
                                            {{1, huge, huge, huge}},
                                            {{inf, 1, 1, 1}, {1, inf, 0, 0}}}) {
    const std::string svg = curve_svg(curve, "t");
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf") == std::string::npos);
    CHECK(svg.ends_with("</svg>\n"));
  }
}

TEST_CASE("Ticks are round and cover the range") {
  CHECK(round_ticks(0, 1000, 5) == std::vector<double>{0, 200, 400, 600, 800, 1000});
  for (const auto& [low, high] : {std::pair{0.0, 953.0}, {-20.0, 7.0}, {0.0, 1e-3}, {3.0, 3.0}}) {
    const auto ticks = round_ticks(low, high, 5);
    CHECK(ticks.front() <= low);
    CHECK(ticks.back() >= high);
    CHECK(ticks.size() < 12);
  }
}

TEST_CASE("Durations are formatted for reading and times for folder names") {
  CHECK(duration_text(0.4) == "0 s");
  CHECK(duration_text(245) == "4 min 05 s");
  CHECK(duration_text(7620) == "2 h 07 min");
  CHECK(duration_text(std::nan("")) == "?");
  CHECK(folder_time(UtcTime(std::chrono::seconds(1'795'255'200))) == "2026-11-21T10-00-00");
}

TEST_CASE("The curve of a resumed run drops the points after its checkpoint") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "m.csv", std::ios::binary)
      << "kind,environment_steps,evaluation_return,evaluation_return_min,evaluation_return_max\r\n"
         "e,100,1,1,1\r\ne,200,2,2,2\r\np,250,,,\r\ne,150,3,3,3\r\n";
  const auto curve = read_curve(folder.path() / "m.csv");
  REQUIRE(curve.size() == 2);
  CHECK(curve[0].environment_steps == 100);
  CHECK(curve[1].environment_steps == 150);
}

TEST_CASE("A run without a complete header of its metrics has no curve yet") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "m.csv";
  CHECK(read_curve(file).empty());
  for (const char* text : {"", "kind,environment_st"}) {
    std::ofstream(file, std::ios::binary) << text;
    CHECK(read_curve(file).empty());
  }
  std::ofstream(file, std::ios::binary) << "kind,updates\r\n";
  CHECK_THROWS_AS(read_curve(file), std::runtime_error);
}
