// Comparison of agents over several runs.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <stdexcept>

#include "experiments/run_folder/origin.hpp"
#include "experiments/statistics/comparison_page.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

/// Writes a run folder with a curve of three evaluations.
void write_run(const fs::path& folder, const std::string& agent, const std::string& task, int seed,
               double last) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.textproto") << "environment { task: \"" << task << "\" }\n"
                                             << agent << " {}\nseed: " << seed << "\n";
  std::ofstream csv(folder / "metrics.csv");
  csv << "environment_steps,evaluation_return,evaluation_return_min,evaluation_return_max\r\n";
  for (int i = 1; i <= 3; ++i)
    csv << i * 1000 << ',' << last * i / 3 << ',' << last * i / 3 << ',' << last * i / 3 << "\r\n";
}

/// Two agents, two tasks, three seeds; sac is better on the first.
void write_runs(const fs::path& top) {
  for (int seed = 1; seed <= 3; ++seed) {
    const std::string name = std::to_string(seed);
    write_run(top / "a" / name, "td3", "walker_walk", seed, 500 + seed);
    write_run(top / "b" / name, "sac", "walker_walk", seed, 700 + seed);
    write_run(top / "c" / name, "td3", "Pendulum-v1", seed, -200 - seed);
    write_run(top / "d" / name, "sac", "Pendulum-v1", seed, -200 - seed);
  }
}

Comparison compared(const fs::path& top, References references = {}) {
  std::vector<std::string> without;
  return Comparison(find_compared({top.string()}, without), std::move(references));
}

} // namespace

TEST_CASE(
    "Runs are found below a folder, grouped by agent and task, and compared on each task's scale") {
  const TemporaryFolder folder;
  write_runs(folder.path());
  const Comparison made = compared(folder.path());
  CHECK(made.runs().size() == 12);
  CHECK(made.methods() == std::vector<std::string>{"td3", "sac"});
  CHECK(made.scale_text("walker_walk") == "0 to 1000");
  CHECK(made.scale_text("Pendulum-v1") == "-203 to -201");
  CHECK(made.finals("sac", "walker_walk") == std::vector<double>{701, 702, 703});
  const Estimate walk = made.task_mean("td3", "walker_walk");
  CHECK(walk.value == doctest::Approx(502));
  CHECK(walk.interval.low >= 501);
  CHECK(walk.interval.high <= 503);
  // Always better on one task, equal on the other.
  CHECK(made.improvement("sac", "td3").value == doctest::Approx(0.75));
  CHECK(made.improvement("td3", "sac").value == doctest::Approx(0.25));
  CHECK(made.estimate("td3", interquartile_mean).value
        == doctest::Approx((0.5 + 0.501 + 0.502 + 0.503) / 4).epsilon(0.01));
  const auto curve = made.mean_curve("sac", "walker_walk");
  REQUIRE(curve.size() == 3);
  CHECK(curve[1].environment_steps == 2000);
  CHECK(curve[1].value == doctest::Approx(702 * 2 / 3.0));
  CHECK(curve[2].minimum <= curve[2].value);
}

TEST_CASE(
    "A mean curve begins where all runs have been evaluated, and ends where one of them ends") {
  const auto run = [](std::vector<CurvePoint> curve) {
    return ComparedRun{.folder = {},
                       .method = "td3",
                       .task = "walker_walk",
                       .curve = std::move(curve),
                       .final_score = 1};
  };
  const ComparedRun early = run({{.environment_steps = 1000, .value = 0},
                                 {.environment_steps = 3000, .value = 200},
                                 {.environment_steps = 4000, .value = 300}});
  const ComparedRun late = run({{.environment_steps = 2000, .value = 10},
                                {.environment_steps = 3000, .value = 20},
                                {.environment_steps = 5000, .value = 30}});
  const auto curve = Comparison({early, late}, {}).mean_curve("td3", "walker_walk");
  REQUIRE(curve.size() == 3);
  CHECK(curve[0].environment_steps == 2000);
  CHECK(curve[0].value == doctest::Approx(55)); // of 100 and 10
  CHECK(curve[2].environment_steps == 4000);
  CHECK(curve[2].value == doctest::Approx(162.5)); // of 300 and 25
  const ComparedRun short_one = run({{.environment_steps = 1000, .value = 0}});
  CHECK(Comparison({short_one, late}, {}).mean_curve("td3", "walker_walk").empty());
}

TEST_CASE("A single run of each method has estimates without intervals") {
  const TemporaryFolder folder;
  write_run(folder / "a", "td3", "walker_walk", 1, 300);
  write_run(folder / "b", "sac", "walker_walk", 1, 600);
  const Comparison made = compared(folder.path());
  const std::string text = comparison_markdown(made);
  CHECK(has(text, "| td3 | 1 | 1 | 0.300 | 0.300 | 0.300 | 0.700 |"));
  CHECK(has(text, "| walker_walk | 0 to 1000 | 300.0, 1 run | 600.0, 1 run |"));
  CHECK(has(text, "| sac | 1.00 |"));
  const auto curve = made.mean_curve("td3", "walker_walk");
  REQUIRE(curve.size() == 3);
  CHECK(curve[2].minimum == 300);
  CHECK(curve[2].maximum == 300);
}

TEST_CASE("Methods are aggregated over the tasks that all of them have, and the others are named") {
  const TemporaryFolder folder;
  write_runs(folder.path());
  fs::remove_all(folder / "d"); // sac's runs on the pendulum
  write_run(folder / "e", "sac", "walker_run", 1, 900);
  const Comparison made = compared(folder.path());
  CHECK(made.left_out_tasks() == std::vector<std::string>{"Pendulum-v1", "walker_run"});
  REQUIRE(made.scores("td3").size() == 1);
  CHECK(made.estimate("td3", mean_score).value == doctest::Approx(0.502));
  CHECK(made.estimate("sac", mean_score).value == doctest::Approx(0.702));
  CHECK(has(comparison_markdown(made), "| td3 | 1 of 3 | 3 | 0.502 ["));
  CHECK(has(comparison_page(made, ""), "scales from 0 to 1; without Pendulum-v1 and walker_run<"));
  fs::remove_all(folder / "b");
  const Comparison apart = compared(folder.path());
  CHECK(std::isnan(apart.estimate("td3", median_score).value));
  CHECK(has(comparison_markdown(apart), "| sac | 0 of 3 | 0 | - | - | - | - |"));
  CHECK_FALSE(has(comparison_page(apart, ""), "performance profiles"));
}

TEST_CASE("The curves of runs on recordings are over updates, beside those of runs that play") {
  const TemporaryFolder folder;
  write_run(folder / "played", "td3", "walker_walk", 1, 600);
  const fs::path recorded = folder / "recorded";
  fs::create_directories(recorded);
  std::ofstream(recorded / "config.textproto") << "environment { task: \"walker_walk\" }\ntd3 {}\n"
                                                  "recording { path: \"played\" updates: 200 }\n";
  std::ofstream(recorded / "metrics.csv")
      << "environment_steps,updates,evaluation_return,evaluation_return_min,evaluation_return_max\n"
         "0,100,10,10,10\n0,200,20,20,20\n";
  const Comparison made = compared(folder.path());
  CHECK(made.mean_curve("td3", "walker_walk").back().environment_steps == 3000);
  const auto curve = made.mean_curve("td3", "walker_walk", "updates");
  REQUIRE(curve.size() == 2);
  CHECK(curve[0].environment_steps == 100);
  CHECK(curve[0].value == 10);
  const std::string page = comparison_page(made, "");
  CHECK(has(page, ">200 updates<"));
  CHECK(has(page, ">3000 environment steps<"));
  CHECK(has(page, ">updates</text>")); // the label of the axis
  // Published scores at a number of environment steps do not depend on such a run.
  std::ofstream(folder / "own.csv") << "method,task,seeds,at_1000\nmine,walker_walk,3,7\n";
  CHECK(read_references(folder / "own.csv", made.runs()).at("walker_walk").at("mine at 1000") == 7);
}

TEST_CASE("References are listed beside the runs and can set a task's scale") {
  const TemporaryFolder folder;
  write_runs(folder.path());
  std::ofstream(folder / "known.csv") << "task,name,score\nPendulum-v1,low,-1200\n"
                                         "Pendulum-v1,high,-150\nwalker_walk,DrQ-v2,980.5\n";
  const Comparison made = compared(folder.path(), read_references(folder / "known.csv", {}));
  CHECK(made.scale_text("Pendulum-v1") == "-1200 to -150");
  const std::string text = comparison_markdown(made);
  CHECK(has(text, "| task | scale | td3 | sac | DrQ-v2 |"));
  CHECK(has(text, "980.5 |"));
  CHECK(has(comparison_latex(made), "walker\\_walk & 0 to 1000 & 502.0 ["));
  std::ofstream(folder / "bad.csv") << "task,name,score\nwalker_walk,DrQ-v2,many\n";
  CHECK_THROWS_WITH_AS(read_references(folder / "bad.csv", {}),
                       doctest::Contains("bad.csv:2: must be"), std::invalid_argument);
}

TEST_CASE(
    "Published tables give scores after the most steps that all runs on a task have reached") {
  const auto run = [](const std::string& task, double steps) {
    return ComparedRun{.folder = {},
                       .method = "td3",
                       .task = task,
                       .seed = 1,
                       .curve = {{.environment_steps = steps, .value = 1}},
                       .final_score = 1};
  };
  const auto states =
      read_references(in_source("experiments/configs/published/states.csv"),
                      {run("cartpole_balance", 500000), run("cartpole_balance", 999999),
                       run("acrobot_swingup", 99999)});
  REQUIRE(states.size() == 1);
  CHECK(states.at("cartpole_balance").at("d4pg at 500000") == 998.7);
  CHECK(read_references(in_source("experiments/configs/published/pixels.csv"),
                        {run("cartpole_balance", 1e6)})
            .at("cartpole_balance")
            .at("drqv2 at 1000000")
        == 993.4);

  const TemporaryFolder folder;
  const fs::path file = folder / "own.csv";
  const auto read = [&](const std::string& text) {
    std::ofstream(file) << text;
    return read_references(file, {run("walker_walk", 250)});
  };
  CHECK(read("method,task,seeds,at_100,at_200,200\nmine,walker_walk,3,7,,9\n")
        == References{{"walker_walk", {{"mine at 100", 7}}}});
  CHECK(has(error_of([&] { read("method,task,seeds,at_100\nmine,walker_walk,3\n"); }),
            "own.csv:2: has 3 fields and the first line 4"));
  CHECK(has(error_of([&] { read("method,task,seeds,at_100\nmine,walker_walk,3,much\n"); }),
            "own.csv:2: column at_100 is \"much\"; it must be a number"));
  CHECK(has(
      error_of(
          [&] { read_references(in_source("experiments/configs/published/sources.csv"), {}); }),
      "sources.csv:1: the first line must be task,name,score, or begin with method,task,seeds"));
}

TEST_CASE("The comparison page is one file that lists every run and marks the differences") {
  const TemporaryFolder folder;
  write_runs(folder.path());
  fs::create_directories(folder / "b/1/videos");
  std::ofstream(folder / "b/1/videos/100.mp4") << "moving";
  write_origin(
      folder / "b/1",
      {.version = "9.9", .command = "", .processor = "<Z80>", .commit = "0123456789abcdef"});
  const std::string page = comparison_page(compared(folder.path()), "Written by <me>.");
  CHECK(has(page, "&lt;Z80&gt;"));
  CHECK(has(page, "9.9, 0123456789ab<"));
  CHECK(has(page, (folder / "d/3").string()));
  CHECK(has(page, "data:video/mp4;base64,bW92aW5n\""));
  CHECK(has(page, "<mark>sac {</mark>"));
  CHECK(has(page, "performance profiles"));
  CHECK(has(page, "Written by &lt;me&gt;."));
  CHECK_FALSE(has(page, "<script"));
  CHECK_FALSE(has(page, "src=\"http"));
}

TEST_CASE("Of several attempts of a run in a sweep, the latest is compared") {
  const TemporaryFolder folder;
  const fs::path part = folder / "sweep/walk_seed=1/walk";
  write_run(part / "2026-01-01T00-00-00", "td3", "walker_walk", 1, 10);
  write_run(part / "2026-01-02T00-00-00", "td3", "walker_walk", 1, 30);
  std::vector<std::string> left_out;
  CHECK(find_compared({folder.path().string()}, left_out).size() == 2); // not yet of a sweep
  CHECK(left_out.empty());
  std::ofstream(folder / "sweep/sweep.csv") << "run\n";
  const auto runs = find_compared({folder.path().string()}, left_out);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].final_score == 30);
  REQUIRE(left_out.size() == 1);
  CHECK(has(left_out[0], "2026-01-01T00-00-00: is left out; a later attempt is "));
  const std::string named = (part / "2026-01-01T00-00-00").string();
  CHECK(find_compared({named}, left_out).size() == 1); // named by the user
}

TEST_CASE("Runs that cannot be compared are refused with the reason") {
  const TemporaryFolder folder;
  std::vector<std::string> without;
  CHECK_THROWS_WITH_AS(find_compared({(folder / "none").string()}, without),
                       doctest::Contains("no run in it or below"), std::invalid_argument);
  write_run(folder / "one", "td3", "walker_walk", 1, 10);
  std::ofstream(folder / "one/metrics.csv")
      << "environment_steps,evaluation_return,evaluation_return_min,evaluation_return_max\r\n";
  CHECK_THROWS_WITH_AS(find_compared({(folder / "one").string()}, without),
                       doctest::Contains("none of the runs has an evaluation"),
                       std::invalid_argument);
  CHECK(without.size() == 1);
  write_run(folder / "two", "td3", "walker_walk", 2, 10);
  std::ofstream(folder / "one/metrics.csv") << "environ"; // its process died here
  CHECK(find_compared({folder.path().string()}, without).size() == 1);
  CHECK(without.size() == 2);
  std::ofstream(folder / "one/metrics.csv") << "steps\r\n1\r\n";
  CHECK_THROWS_WITH_AS(find_compared({"mine=" + (folder / "one").string()}, without),
                       doctest::Contains("has no column environment_steps"), std::invalid_argument);
}
