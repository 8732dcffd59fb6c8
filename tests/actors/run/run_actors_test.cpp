#include "actors/run/run_actors.hpp"

#include <functional>
#include <utility>
#include <vector>

#include "actors/roles/checkpoint.hpp"
#include "actors/run/run_checkpoints.hpp"
#include "tests/doctest_torch.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using Promise = caf::typed_response_promise<std::int64_t>;

/// A learner that leaves its first `ignored` requests without an answer.
caf::behavior starved(caf::stateful_actor<std::vector<Promise>>* self, std::size_t ignored) {
  return {[=](flush_atom) -> caf::result<std::int64_t> {
    auto promise = self->make_response_promise<std::int64_t>();
    if (self->state.size() == ignored)
      promise.deliver(std::int64_t{7});
    else
      self->state.push_back(promise);
    return promise;
  }};
}

/// A learner that writes its part of a checkpoint until it gets tick_atom.
caf::behavior
writes_slowly(caf::stateful_actor<std::vector<caf::typed_response_promise<done_atom>>>* self) {
  return {[](save_atom, const std::string&) { return done_atom_v; },
          [self](written_atom) -> caf::result<done_atom> {
            auto promise = self->make_response_promise<done_atom>();
            self->state.push_back(promise);
            return promise;
          },
          [self](tick_atom) {
            for (auto& promise : std::exchange(self->state, {}))
              promise.deliver(done_atom_v);
          }};
}

struct HeadFixture {
  SystemConfig system_config{false};
  caf::actor_system system{system_config};
  RunConfig config;
  replay::TransitionSpec transitions;
  std::filesystem::path folder;
  Deployment deployment;
  std::vector<std::string> logged;
  RunCallbacks callbacks{
      .log = [this](const std::string&, const std::string& text) { logged.push_back(text); }};
  std::atomic<bool> stop = false, nothing_left = false;
  RunContext context{.system = system,
                     .config = config,
                     .transitions = transitions,
                     .folder = folder,
                     .resume_from = folder,
                     .deployment = deployment,
                     .callbacks = callbacks,
                     .stop = stop,
                     .nothing_left = nothing_left};
  bool stalled = false;
  std::function<void()> on_update; // called ten times a second once the services have started
  RunActors actors{context,
                   {.updated =
                        [this](const UpdatePtr&) {
                          if (on_update)
                            on_update();
                        },
                    .stalled = [this] { return stalled; }}};
  std::vector<caf::actor> learners;

  ~HeadFixture() {
    for (const auto& learner : learners)
      caf::anon_send_exit(learner, caf::exit_reason::user_shutdown);
  }
  void add(std::size_t ignored) { learners.push_back(system.spawn(starved, ignored)); }
  std::vector<std::int64_t> ask(RunActors::Wait wait) {
    return actors.ask_all<std::int64_t>(learners, wait, 20ms, "waiting for a learner",
                                        flush_atom_v);
  }
};

constexpr std::size_t kForever = 1'000'000;

TEST_CASE_FIXTURE(HeadFixture, "The head waits for a learner that is alive and logs how long") {
  add(0);
  add(2);
  CHECK(ask(RunActors::Wait::patient) == std::vector<std::int64_t>{7, 7});
  REQUIRE(logged.size() >= 2);
  CHECK(logged[0].starts_with("waiting for a learner: no answer for 0 s; it is alive"));
}

TEST_CASE_FIXTURE(HeadFixture, "A patient wait ends when an actor is lost") {
  add(kForever);
  actors.lost().insert({Role::learner, 0});
  CHECK_THROWS_AS(ask(RunActors::Wait::patient), ActorLost);
}

TEST_CASE_FIXTURE(HeadFixture,
                  "In rounds a lost evaluator does not end a request to another actor") {
  config.deterministic = true;
  add(0);
  actors.lost().insert({Role::evaluator, 0});
  CHECK(ask(RunActors::Wait::patient) == std::vector<std::int64_t>{7});
}

TEST_CASE_FIXTURE(HeadFixture, "A patient wait fails after a step once the run stops") {
  add(kForever);
  stop = true;
  CHECK_THROWS_WITH_AS(ask(RunActors::Wait::patient), doctest::Contains("waiting for a learner"),
                       RunFailed);
}

TEST_CASE_FIXTURE(HeadFixture, "A patient wait fails after a step once the run has stalled") {
  add(kForever);
  stalled = true;
  CHECK_THROWS_WITH_AS(ask(RunActors::Wait::patient), doctest::Contains("waiting for a learner"),
                       RunFailed);
}

TEST_CASE_FIXTURE(HeadFixture, "A wait of one step fails after it") {
  add(1);
  CHECK_THROWS_WITH_AS(ask(RunActors::Wait::one_step), doctest::Contains("waiting for a learner"),
                       RunFailed);
}

TEST_CASE_FIXTURE(HeadFixture,
                  "The final checkpoint waits for one that an actor's death has interrupted") {
  const TemporaryFolder temporary;
  folder = temporary.path();
  config.workload = [] { return nullptr; };
  actors.start_services(0);
  learners.push_back(system.spawn(writes_slowly));
  actors.send(actors.checkpointer(), subscribe_atom_v, static_cast<std::uint8_t>(Role::learner),
              std::int32_t{0}, learners[0]);
  wire::RunState state;
  state.set_updates(3);
  actors.ask<done_atom>(actors.checkpointer(), 60s, "capturing", save_atom_v,
                        (folder / "checkpoints").string(), encode(state));
  on_update = [this] { caf::anon_send(learners[0], tick_atom_v); };
  state.set_updates(5);
  RunCheckpoints checkpoints(context, actors, [](const std::string&) {});
  const std::filesystem::path last = checkpoints.write(state);
  CHECK(last == folder / "checkpoints/5");
  CHECK(read_manifest(last).state().updates() == 5);
  CHECK(read_manifest(folder / "checkpoints/3").state().updates() == 3);
}

} // namespace
} // namespace troupe::actors
