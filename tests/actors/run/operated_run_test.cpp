// A run whose actors are threads of one process, operated through the requests of `troupe pause`,
// `troupe timeline` and other commands.
#include "tests/actors/small_run.hpp"

#include <fstream>
#include <future>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "actors/run/control.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::seconds kPatience{120};

/// Runs on another thread until it is stopped or complete.
class OperatedRun {
public:
  OperatedRun(const RunConfig& config, const fs::path& folder) {
    std::promise<std::uint16_t> listening;
    auto port = listening.get_future();
    thread_ = std::jthread([this, config, folder, &listening] {
      Deployment deployment;
      deployment.operated = true;
      deployment.listening = [&](std::uint16_t number) { listening.set_value(number); };
      result_ = run(config, folder, {}, deployment, {}, stop_);
    });
    REQUIRE(port.wait_for(kPatience) == std::future_status::ready);
    control_.emplace(ControlPlace{.port = port.get(), .folder = fs::absolute(folder).string()});
  }
  ~OperatedRun() { stop_ = true; }

  Control& control() { return *control_; }
  template <class Condition>
  void wait_for(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition(control_->status()))
      REQUIRE(std::chrono::steady_clock::now() < deadline);
  }
  void wait_for_updates(std::int64_t updates) {
    wait_for([&](const wire::RunStatus& now) {
      return now.head().phase() == "training" && now.counters().updates() >= updates;
    });
  }
  const RunResult& end(bool now) {
    if (now)
      stop_ = true;
    thread_.join();
    return result_;
  }

private:
  std::atomic<bool> stop_ = false;
  RunResult result_;
  std::optional<Control> control_;
  std::jthread thread_;
};

constexpr auto* refused = &error_of<std::invalid_argument>;

TEST_CASE(
    "A single-process run records a timeline of all its actors and changes its rate limiter") {
  auto config = small(2'000'000'000);
  config.deterministic = false;
  const TemporaryFolder folder;
  OperatedRun live(config, folder.path());
  live.wait_for_updates(100);
  CHECK(has(live.control().timeline(5, kPatience), "timelines/"));
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder / "timelines"))
    files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  std::ifstream in(files[0]);
  const auto trace = nlohmann::json::parse(in);
  std::map<int, std::string> names;
  std::map<std::string, int> spans;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("name") == "process_name")
      names[event.at("pid")] = std::string(event.at("args").at("name")).substr(0, 9);
    else if (event.at("ph") == "X")
      ++spans[names.at(event.at("pid")) + ": " + std::string(event.at("name"))];
  CHECK(names.size() == 5); // a learner, two shards, two environment actors
  CHECK(spans["learner 0: update"] == 5);
  CHECK(spans["learner 0: wait"] > 0);
  CHECK(spans["learner 0: optimizer"] + spans["learner 0: gather batch"] > 0);
  CHECK(spans["replay 0 : sample"] > 0);
  for (const std::int64_t updates : {0, 1001})
    CHECK(has(refused([&] { live.control().timeline(updates, kPatience); }), "from 1 to 1000"));

  CHECK(live.control().status().head().samples_per_insert() == 8);
  CHECK(has(live.control().limit(2, 0, kPatience), "2 samples per insert"));
  live.wait_for([](const wire::RunStatus& now) {
    return now.head().samples_per_insert() == 2 && now.head().limit_changed();
  });
  const auto before = live.control().status().counters();
  live.wait_for([&](const wire::RunStatus& now) {
    return now.counters().inserts() > before.inserts() + 3000;
  });
  const auto after = live.control().status().counters();
  const double ratio = static_cast<double>(after.samples() - before.samples())
                       / static_cast<double>(after.inserts() - before.inserts());
  CHECK(ratio < 3.5);
  CHECK(ratio > 1);
  CHECK(has(refused([&] { live.control().limit(0, 0, kPatience); }), "above 0"));
  CHECK(has(refused([&] { live.control().limit(2, 5, kPatience); }), "wait for each other"));
  CHECK(has(refused([&] { live.control().scale("environment", 3, kPatience); }), "--processes"));

  CHECK(has(live.control().pause(true, kPatience), "pauses"));
  live.wait_for([](const wire::RunStatus& now) { return now.head().phase() == "paused"; });
  CHECK(has(refused([&] { live.control().timeline(5, kPatience); }), "`troupe pause --off`"));
  live.control().pause(false, kPatience);
  live.wait_for_updates(live.control().status().counters().updates() + 100);
  CHECK(live.end(true).error == "");
}

TEST_CASE(
    "A live run shows its scene, refuses pictures that it cannot show and continues training") {
  auto config = small(2'000'000'000);
  config.deterministic = false;
  config.actors.environments_per_actor = 2;
  const TemporaryFolder folder;
  OperatedRun live(config, folder.path());
  live.wait_for_updates(10);
  wire::PictureOrder order;
  order.set_actor(1);
  order.set_environment(1);
  const auto scene = live.control().picture(order, kPatience);
  CHECK(scene.height() == 240);
  CHECK(scene.width() == 320);
  CHECK_FALSE(scene.observed());
  CHECK(scene.agent_steps() > 0);
  CHECK(scene.environments() == 2);
  CHECK(std::set<char>(scene.rgb().begin(), scene.rgb().end()).size() > 20);

  const auto why = [&](int actor, int environment, bool observed) {
    order.set_actor(actor);
    order.set_environment(environment);
    order.set_observed(observed);
    return refused([&] { live.control().picture(order, kPatience); });
  };
  CHECK(has(why(0, 0, true), "numbers, not a picture"));
  CHECK(has(why(9, 0, false), "the run has 2 environment actors"));
  CHECK(has(why(-1, 0, false), "actor=-1"));
  CHECK(has(why(0, 99, false), "environment=99"));
  CHECK(has(why(0, -1, false), "environment=-1"));
  live.wait_for_updates(live.control().status().counters().updates() + 100);
  CHECK(live.end(true).error == "");
}

TEST_CASE("A live run shows the picture that its agent sees") {
  auto config = small(2'000'000'000);
  config.deterministic = false;
  config.environment.pixels = env::PixelOptions{.height = 64, .width = 64, .grey = true};
  const TemporaryFolder folder;
  OperatedRun live(config, folder.path());
  live.wait_for_updates(1);
  wire::PictureOrder order;
  order.set_observed(true);
  const auto seen = live.control().picture(order, kPatience);
  CHECK(seen.observed());
  CHECK(seen.height() == 64);
  CHECK(seen.width() == 64);
  CHECK(std::set<char>(seen.rgb().begin(), seen.rgb().end()).size() > 5);
  CHECK(live.end(true).error == "");
}

TEST_CASE("A pause between rounds does not change the result of a deterministic run") {
  const TemporaryFolder whole, held;
  const RunResult a = play(small(6000), whole.path());
  OperatedRun live(small(6000), held.path());
  live.control().pause(true, kPatience);
  live.wait_for([](const wire::RunStatus& now) { return now.head().phase() == "paused"; });
  const auto still = live.control().status().counters();
  CHECK(has(live.control().checkpoint(kPatience), "checkpoint "));
  const auto later = live.control().status().counters();
  CHECK(later.environment_steps() == still.environment_steps());
  CHECK(later.updates() == still.updates());
  CHECK(later.environment_steps() < 6000);
  CHECK(has(refused([&] { live.control().limit(2, 0, kPatience); }), "`troupe resume --set"));
  live.control().pause(false, kPatience);
  CHECK(has(live.control().timeline(3, kPatience), "timelines/"));
  const RunResult& b = live.end(false);
  REQUIRE(b.error == "");
  CHECK(a.progress.updates == b.progress.updates);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors");
  check_equal(a.checkpoint, b.checkpoint, "optimizer.safetensors");
}

} // namespace
} // namespace troupe::actors
