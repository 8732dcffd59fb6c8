#include "actors/run/run_actors.hpp"

#include <vector>

#include "tests/actors/run/head_fixture.hpp"

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

struct LearnersFixture : HeadFixture {
  void add(std::size_t ignored) { fakes.push_back(system.spawn(starved, ignored)); }
  std::vector<std::int64_t> ask(RunActors::Wait wait) {
    return actors.ask_all<std::int64_t>(fakes, wait, 20ms, "waiting for a learner", flush_atom_v);
  }
};

constexpr std::size_t kForever = 1'000'000;

TEST_CASE_FIXTURE(LearnersFixture, "The head waits for a learner that is alive and logs how long") {
  add(0);
  add(2);
  CHECK(ask(RunActors::Wait::patient) == std::vector<std::int64_t>{7, 7});
  REQUIRE(logged.size() >= 2);
  CHECK(logged[0].starts_with("waiting for a learner: no answer for 0 s; it is alive"));
}

TEST_CASE_FIXTURE(LearnersFixture, "A patient wait ends when an actor is lost") {
  add(kForever);
  actors.lost().insert({Role::learner, 0});
  CHECK_THROWS_AS(ask(RunActors::Wait::patient), ActorLost);
}

TEST_CASE_FIXTURE(LearnersFixture,
                  "In rounds a lost evaluator does not end a request to another actor") {
  config.deterministic = true;
  add(0);
  actors.lost().insert({Role::evaluator, 0});
  CHECK(ask(RunActors::Wait::patient) == std::vector<std::int64_t>{7});
}

TEST_CASE_FIXTURE(LearnersFixture, "A patient wait fails after a step once the run stops") {
  add(kForever);
  stop = true;
  CHECK_THROWS_WITH_AS(ask(RunActors::Wait::patient), doctest::Contains("waiting for a learner"),
                       RunFailed);
}

TEST_CASE_FIXTURE(LearnersFixture, "A patient wait fails after a step once the run has stalled") {
  add(kForever);
  stalled = true;
  CHECK_THROWS_WITH_AS(ask(RunActors::Wait::patient), doctest::Contains("waiting for a learner"),
                       RunFailed);
}

TEST_CASE_FIXTURE(LearnersFixture, "A wait of one step fails after it") {
  add(1);
  CHECK_THROWS_WITH_AS(ask(RunActors::Wait::one_step), doctest::Contains("waiting for a learner"),
                       RunFailed);
}

TEST_CASE_FIXTURE(LearnersFixture, "A death does not end a request that is answered in any case") {
  add(0);
  actors.lost().insert({Role::environment, 0});
  CHECK(actors.ask_all<std::int64_t>(fakes, RunActors::Wait::uninterrupted, 60s,
                                     "waiting for a learner", flush_atom_v)
        == std::vector<std::int64_t>{7});
}

} // namespace
} // namespace troupe::actors
