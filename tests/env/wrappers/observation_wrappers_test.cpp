#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "env/make/make.hpp"
#include "env/random.hpp"
#include "env/wrappers/dictionary.hpp"
#include "env/wrappers/episode_statistics.hpp"
#include "env/wrappers/flat_state.hpp"
#include "env/wrappers/frame_stack.hpp"
#include "env/wrappers/normalize.hpp"
#include "env/wrappers/time_limit.hpp"
#include "tests/env/fake_environment.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::env;
namespace fs = std::filesystem;

namespace {

std::unique_ptr<Environment> flat() {
  return std::make_unique<FlatState>(std::make_unique<Counting>());
}

} // namespace

TEST_CASE("A dictionary has the named arrays, in the given order, as float32") {
  const auto make = [](std::vector<std::string> names) {
    return Played(std::make_unique<Dictionary>(std::make_unique<Counting>(), names));
  };
  Played played = make({"pair", "state", "count"});
  const EnvironmentSpec& spec = played.environment->spec();
  CHECK(spec.observations
        == std::vector<ArraySpec>{{"pair", ElementType::float32, {2}},
                                  {"state", ElementType::float32, {3}},
                                  {"count", ElementType::float32, {1}}});
  played.reset(7).step({.25, 0});
  const auto at = [](const Played& from, std::size_t i) {
    const EnvironmentSpec& its = from.environment->spec();
    return numbers<float>(std::span(from.observation)
                              .subspan(its.observation_offset(i), its.observations[i].bytes()));
  };
  CHECK(at(played, 0) == std::vector<float>{8, .25F});
  CHECK(at(played, 1) == std::vector<float>{8, 8, .25F});
  CHECK(at(played, 2) == std::vector<float>{8});
  Played chosen = make({"state[2,0]", "count", "pair[1]"});
  chosen.reset(7).step({.25, 0});
  CHECK(chosen.environment->spec().observations[0]
        == ArraySpec{"state[2,0]", ElementType::float32, {2}});
  CHECK(at(chosen, 0) == std::vector<float>{.25F, 8});
  CHECK(at(chosen, 1) == std::vector<float>{8});
  CHECK(at(chosen, 2) == std::vector<float>{.25F});
  for (const char* bad : {"state[3]", "state[]", "state[1", "state[1,]", "state[1]x", "pair[-1]"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(make({bad}), doctest::Contains("must end with numbers from 0 to"),
                         std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(make({}), doctest::Contains("at least one name"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make({"pair", "pair"}), doctest::Contains("twice"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make({"pear"}), doctest::Contains("nearest: 'pair'"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make({"pixels"}), doctest::Contains("no physics"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(played.reset(7).step({1e300, 0}), doctest::Contains("'pair'[1]"),
                       std::runtime_error);
}

TEST_CASE("Frames of a dictionary are stacked array by array") {
  Played played(std::make_unique<FrameStack>(
      std::make_unique<Dictionary>(std::make_unique<Counting>(),
                                   std::vector<std::string>{"count", "pair"}),
      2));
  const EnvironmentSpec& spec = played.environment->spec();
  CHECK(spec.observations
        == std::vector<ArraySpec>{{"count", ElementType::float32, {2}},
                                  {"pair", ElementType::float32, {4}}});
  played.reset(3).step({1, 0}).step({2, 0});
  const auto count = numbers<float>(std::span(played.observation).first(8));
  const auto pair = numbers<float>(std::span(played.observation).last(16));
  CHECK(count == std::vector<float>{4, 5});
  CHECK(pair == std::vector<float>{4, 1, 5, 2});
  std::vector<std::byte> state;
  played.environment->save_state(state);
  Played other(std::make_unique<FrameStack>(
      std::make_unique<Dictionary>(std::make_unique<Counting>(),
                                   std::vector<std::string>{"count", "pair"}),
      2));
  CHECK(other.environment->load_state(state).empty());
  CHECK(other.step({3, 0}).observation == played.step({3, 0}).observation);
}

TEST_CASE("Running statistics are the mean and variance of all observations") {
  Played played(std::make_unique<Normalize>(flat(), NormalizeOptions{.clip = 1e6}));
  Random random(5);
  std::vector<double> seen; // the third element: action 0 of the step, or 0 after a reset
  played.reset(100);
  seen.push_back(0);
  for (int i = 0; i < 4; ++i) {
    const double action = random.uniform(-2, 6);
    played.step({action, 0});
    seen.push_back(static_cast<double>(static_cast<float>(action)));
  }
  const auto& statistics = static_cast<Normalize&>(*played.environment).statistics();
  double mean = 0;
  for (const double value : seen)
    mean += value / static_cast<double>(seen.size());
  double variance = 0;
  for (const double value : seen)
    variance += (value - mean) * (value - mean) / static_cast<double>(seen.size());
  CHECK(statistics.count == 5);
  CHECK(statistics.arrays[0].mean[2] == doctest::Approx(mean));
  CHECK(statistics.variance(0, 2) == doctest::Approx(variance));
  CHECK(static_cast<double>(numbers<float>(played.observation)[2])
        == doctest::Approx((seen.back() - mean) / std::sqrt(variance + 1e-8)));
}

TEST_CASE("Large offsets do not reduce the precision of the variance") {
  ObservationStatistics none = empty_statistics(flat()->spec());
  Played played(std::make_unique<Normalize>(std::make_unique<Counting>(), NormalizeOptions{}));
  played.reset(std::uint64_t{1} << 40); // 2^40 + 0..4
  for (int i = 0; i < 4; ++i)
    played.step({0, 0});
  CHECK(static_cast<Normalize&>(*played.environment).statistics().variance(0, 0) == 2);
}

TEST_CASE("Frozen statistics are unchanged, are read from a file exactly, and clip observations") {
  const TemporaryFolder folder;
  Played running(std::make_unique<Normalize>(flat(), NormalizeOptions{}));
  running.reset(1).step({.1, 0}).step({.7, 0});
  const ObservationStatistics saved = static_cast<Normalize&>(*running.environment).statistics();
  write_statistics(folder / "statistics.json", saved);
  CHECK(read_statistics(folder / "statistics.json") == saved);

  Played frozen(std::make_unique<Normalize>(
      flat(), NormalizeOptions{.clip = 2,
                               .update = false,
                               .statistics = read_statistics(folder / "statistics.json")}));
  frozen.reset(1'000'000).step({.1, 0});
  CHECK(static_cast<Normalize&>(*frozen.environment).statistics() == saved);
  CHECK(numbers<float>(frozen.observation)[0] == 2); // clipped
}

TEST_CASE(
    "Statistics that do not fit and invalid files are refused, and the error names the cause") {
  const TemporaryFolder folder;
  const auto refuse = [&](const std::string& text, const char* part) {
    std::ofstream(folder / "bad.json") << text;
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(read_statistics(folder / "bad.json"), doctest::Contains(part),
                         std::runtime_error);
  };
  refuse("", "bad.json");
  refuse("{}", "format");
  refuse(R"({"format": "other", "count": 1, "arrays": []})", "its format is");
  const std::string head = R"({"format": "troupe observation statistics 1", )";
  refuse(head + R"("count": -1, "arrays": []})", "negative");
  refuse(head + R"("count": 1, "arrays": [{"name": "a", "mean": [1], "sum_of_squares": []}]})",
         "1 means and 0 sums");
  refuse(head + R"("count": 1, "arrays": [{"name": "a", "mean": [1], "sum_of_squares": [-1]}]})",
         "negative sum");
  refuse(head + R"("count": 1, "arrays": [{"name": "a", "mean": ["x"], "sum_of_squares": [1]}]})",
         "bad.json");
  CHECK_THROWS_WITH(read_statistics(folder / "none.json"), doctest::Contains("none.json"));
  ObservationStatistics other = empty_statistics(Counting().spec());
  CHECK_THROWS_WITH_AS(Normalize(flat(), {.statistics = other}), doctest::Contains("do not fit"),
                       std::invalid_argument);
  CHECK_THROWS_AS(Normalize(flat(), {.clip = 0}), std::invalid_argument);
}

TEST_CASE("Statistics are part of the saved state") {
  Played a(std::make_unique<Normalize>(flat(), NormalizeOptions{}));
  a.reset(1).step({.1, 0}).step({.7, 0});
  std::vector<std::byte> state;
  a.environment->save_state(state);
  Played b(std::make_unique<Normalize>(flat(), NormalizeOptions{}));
  CHECK(b.environment->load_state(state).empty());
  CHECK(a.step({2, 0}).observation == b.step({2, 0}).observation);
  for (std::size_t size = 0; size < state.size(); size += 3)
    CHECK_THROWS_AS(b.environment->load_state(std::span(state).first(size)), std::invalid_argument);
}

TEST_CASE("Episode statistics sum the rewards of an episode and report its end once") {
  std::vector<EpisodeSummary> ended;
  const auto keep = [&](const EpisodeSummary& episode) { ended.push_back(episode); };
  EpisodeStatistics counted(std::make_unique<Counting>(), keep);
  std::vector<std::byte> observation(counted.spec().observation_bytes());
  const std::vector<double> action{0, 0};
  for (const std::uint64_t seed : {4, 9}) {
    counted.reset(seed, observation);
    for (int i = 0; i < 5; ++i)
      counted.step(action, observation);
  }
  REQUIRE(ended.size() == 2);
  CHECK(ended[1] == EpisodeSummary{.seed = 9, .episode_return = 15, .steps = 5, .seconds = 2.5});
  counted.reset(1, observation);
  counted.step(action, observation);
  std::vector<std::byte> state;
  counted.save_state(state);
  EpisodeStatistics other(std::make_unique<Counting>(), keep);
  CHECK(other.load_state(state).empty());
  for (int i = 0; i < 4; ++i)
    other.step(action, observation);
  REQUIRE(ended.size() == 3); // the other one reports the whole episode
  CHECK(ended[2] == EpisodeSummary{.seed = 1, .episode_return = 15, .steps = 5, .seconds = 2.5});
}

TEST_CASE("An episode log has one line per episode, for any number of environments") {
  const TemporaryFolder folder;
  const auto make = [&] {
    return Played(std::make_unique<EpisodeStatistics>(std::make_unique<Counting>(),
                                                      append_to_log(folder / "log", "counting")));
  };
  Played a = make();
  Played b = make();
  a.reset(1);
  b.reset(2);
  for (int i = 0; i < 5; ++i) {
    a.step({0, 0});
    b.step({0, 0});
  }
  CHECK(
      read_text(folder / "log")
      == R"({"environment":"counting","seed":1,"return":15.0,"steps":5,"seconds":2.5,"terminated":false}
{"environment":"counting","seed":2,"return":15.0,"steps":5,"seconds":2.5,"terminated":false}
)");
  CHECK_THROWS_WITH(append_to_log(folder / "none" / "log", "x"), doctest::Contains("episode_log"));
}

TEST_CASE("make_environment builds every wrapper that the configuration asks for") {
  const auto spec_of = [](const EnvironmentConfig& config) {
    return make_environment(config)->spec();
  };
  const EnvironmentConfig plain{.task = "walker_walk"};
  CHECK(spec_of(plain).observations
        == std::vector<ArraySpec>{{"state", ElementType::float32, {24}}});
  CHECK(spec_of({.task = "walker_walk", .action_repeat = 2, .time_limit = 101}).episode_steps
        == 51);
  CHECK(spec_of({.task = "walker_walk", .action_clip = .5}).action.maximum[0] == .5);
  CHECK(
      spec_of({.task = "walker_walk", .action_clip = .5, .action_rescale = true}).action.maximum[0]
      == 1);
  CHECK(spec_of({.task = "walker_walk", .frame_stack = 2, .observations = {"height", "velocity"}})
            .observations
        == std::vector<ArraySpec>{{"height", ElementType::float32, {2}},
                                  {"velocity", ElementType::float32, {18}}});
  const std::pair<EnvironmentConfig, const char*> bad[] = {
      {{.task = "walker_walk", .plugin = "none.so"}, "none.so"},
      {{.task = "walker_walk", .options = {"a=1"}}, "no options"},
      {{.task = "walker_walk", .options = {"a"}}, "key=value"},
      {{.task = "walker_walk", .time_limit = -1}, "time_limit"},
      {{.task = "walker_walk", .action_clip = 0}, "action_clip"},
      {{.task = "walker_walk", .action_clip = 1.5}, "action_clip"},
      {{.task = "walker_walk", .action_noise = -1}, "action_noise"},
      {{.task = "walker_walk", .reward_scale = 0}, "reward_scale"},
      {{.task = "walker_walk", .reward_clip = -1}, "reward_clip"},
      {{.task = "walker_walk", .observations = {"hight"}}, "'height'"},
      {{.task = "walker_walk", .normalization = {.mode = "frozen"}}, "normalization.file"},
      {{.task = "walker_walk", .normalization = {.mode = "of"}}, "normalization.mode"},
      {{.task = "walker_walk", .randomization = {.masses = 2}}, "randomization.masses"},
      {{.task = "walker_wolk"}, "'walker_walk'"},
  };
  for (const auto& [config, part] : bad) {
    CAPTURE(part);
    CHECK_THROWS_WITH_AS(make_environment(config), doctest::Contains(part), std::invalid_argument);
  }
}

TEST_CASE("Rewards are summed over repeated actions before they are scaled and clipped") {
  const EnvironmentConfig plain{.task = "pendulum_swingup", .action_repeat = 3};
  EnvironmentConfig scaled = plain;
  scaled.reward_scale = 5;
  scaled.reward_clip = 8;
  Played a(make_environment(plain));
  Played b(make_environment(scaled));
  a.reset(1);
  b.reset(1);
  bool clipped = false;
  for (int i = 0; i < 300; ++i) {
    const double reward = a.step({1}).last.reward;
    REQUIRE(b.step({1}).last.reward == std::min(5 * reward, 8.)); // after the repeated sum
    clipped = clipped || 5 * reward > 8;
    if (a.last.step_type == StepType::last)
      break;
  }
  CHECK(a.observation == b.observation);
}
