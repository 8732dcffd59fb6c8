// An actor that the embedding program adds to a run.
#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <mutex>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages.pb.h"
#include "tests/actors/small_run.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

using Options = std::vector<std::string>;

struct Reports {
  std::mutex mutex;
  std::vector<wire::EpisodesReport> all;
};
/// The companion's answer; empty: the options stay.
using Answer = std::function<caf::result<ProtoBytes>(const wire::EpisodesReport&)>;

CompanionActor::behavior_type companion(CompanionActor::pointer, std::shared_ptr<Reports> reports,
                                        Answer answer) {
  return {[=](report_atom, const ProtoBytes& bytes) -> caf::result<ProtoBytes> {
    const auto report = decode<wire::EpisodesReport>(bytes);
    const std::scoped_lock lock(reports->mutex);
    reports->all.push_back(report);
    return answer(report);
  }};
}

ProtoBytes change(const Options& options) {
  wire::TaskChange made;
  made.set_changes(!options.empty());
  made.mutable_options()->Add(options.begin(), options.end());
  return encode(made);
}

/// Episodes have 10 steps at first, and 30 after 800 steps.
ProtoBytes lengthen(const wire::EpisodesReport& report) {
  const auto steps = report.environment_steps();
  return change(steps == 0     ? Options{"max_episode_steps=10"}
                : steps >= 800 ? Options{"max_episode_steps=30"}
                               : Options{});
}

RunConfig with(const std::shared_ptr<Reports>& reports, const Answer& answer,
               std::int64_t environment_steps) {
  RunConfig config = small(environment_steps);
  config.environment = {.task = "Pendulum-v1", .options = {"max_episode_steps=20"}};
  config.companion = [=](caf::actor_system& system) {
    return caf::actor_cast<caf::actor>(system.spawn(companion, reports, answer));
  };
  return config;
}

Options options_of(const wire::EpisodesReport& report) {
  return {report.task_options().begin(), report.task_options().end()};
}

} // namespace

TEST_CASE("A companion receives the episodes, and its options apply from the next episodes") {
  const TemporaryFolder folder;
  const auto reports = std::make_shared<Reports>();
  const RunResult result = play(with(reports, lengthen, 1600), folder.path());
  REQUIRE(result.error == "");
  REQUIRE(reports->all.size() > 5);
  const auto& first = reports->all.front();
  CHECK(first.returns_size() == 0);
  CHECK(options_of(first) == Options{"max_episode_steps=20"});
  std::vector<std::int64_t> lengths;
  std::int64_t steps = 0;
  for (const auto& report : reports->all) {
    CHECK(report.returns_size() == report.lengths_size());
    lengths.insert(lengths.end(), report.lengths().begin(), report.lengths().end());
    CHECK(report.environment_steps() >= std::exchange(steps, report.environment_steps()));
  }
  CHECK(std::ssize(lengths) == result.progress.episodes);
  CHECK(std::is_sorted(lengths.begin(), lengths.end()));
  CHECK(lengths.front() == 10);
  CHECK(lengths.back() == 30);
  CHECK(std::all_of(lengths.begin(), lengths.end(), [](auto n) { return n == 10 || n == 30; }));
  CHECK(options_of(reports->all.back()) == Options{"max_episode_steps=30"});
}

TEST_CASE("A resumed deterministic run with a companion equals an uninterrupted one") {
  const TemporaryFolder whole, parts;
  const auto reports = std::make_shared<Reports>();
  const auto resumed = std::make_shared<Reports>();
  const RunResult a = play(with(reports, lengthen, 2000), whole.path());
  const RunResult half = play(with(std::make_shared<Reports>(), lengthen, 1200), parts.path());
  REQUIRE(half.error == "");
  const RunResult b = play(with(resumed, lengthen, 2000), parts.path(), half.checkpoint);
  REQUIRE(a.error == "");
  REQUIRE(b.error == "");
  CHECK(a.progress.updates > half.progress.updates);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
  REQUIRE(!resumed->all.empty());
  CHECK(options_of(resumed->all.front()) == Options{"max_episode_steps=30"});
  CHECK(resumed->all.front().environment_steps() >= 1200);
  RunConfig alone = with(resumed, lengthen, 2000);
  alone.companion = {};
  CHECK_THROWS_WITH_AS(check_resumption(alone, half.checkpoint),
                       doctest::Contains("companion is not given"), std::invalid_argument);
}

TEST_CASE("Options that the task refuses end the run with the task's error") {
  for (const bool deterministic : {true, false}) {
    const TemporaryFolder folder;
    RunConfig config = with(
        std::make_shared<Reports>(),
        [](const wire::EpisodesReport& report) {
          return change(report.returns_size() > 0 ? Options{"speed=3"} : Options{});
        },
        1'000'000);
    config.deterministic = deterministic;
    const RunResult result = play(config, folder.path());
    CHECK(result.error.find("the companion's task options \"speed=3\" are refused: ") == 0);
    CHECK(result.error.find("there is no option 'speed'") != std::string::npos);
  }
}

TEST_CASE("A companion's failure ends the run with its reason") {
  const TemporaryFolder folder;
  RunConfig config = with(
      std::make_shared<Reports>(),
      [](const wire::EpisodesReport& report) -> caf::result<ProtoBytes> {
        if (report.returns_size() > 0)
          return caf::make_error(Fault::failed, "the lesson plan is lost");
        return change({});
      },
      1'000'000);
  config.deterministic = false;
  const RunResult result = play(config, folder.path());
  CAPTURE(result.error);
  CHECK(result.error.find("asking the companion of the run") == 0);
  CHECK(result.error.find("the lesson plan is lost") != std::string::npos);
}

TEST_CASE("A companion that could not reach the environments is refused") {
  RunConfig config = with(std::make_shared<Reports>(), lengthen, 100);
  CHECK_NOTHROW(check_run(config, false));
  CHECK_THROWS_WITH_AS(check_run(config, true), doctest::Contains("leave --processes out"),
                       std::invalid_argument);
  config.environment.normalization.mode = "running";
  CHECK_THROWS_WITH_AS(check_run(config, false),
                       doctest::Contains("environment.normalization.mode"), std::invalid_argument);
  config.recording = "recorded";
  config.stop.updates = 1;
  CHECK_THROWS_WITH_AS(check_run(config, false),
                       doctest::Contains("no environment actor plays in this run"),
                       std::invalid_argument);
}

} // namespace troupe::actors
