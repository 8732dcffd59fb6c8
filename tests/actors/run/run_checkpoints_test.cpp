// Checkpoints of a run whose actors die or fail while they write.
#include "actors/run/run_checkpoints.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "actors/roles/checkpoint.hpp"
#include "tests/actors/run/head_fixture.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using Done = caf::typed_response_promise<done_atom>;

/// A learner that writes its part of a checkpoint until it gets tick_atom. As an environment actor
/// it has written its part at once.
caf::behavior writes_slowly(caf::stateful_actor<std::vector<Done>>* self) {
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

/// A learner whose disk is full.
caf::behavior fails_to_write(caf::event_based_actor*) {
  return {[](save_atom, const std::string&) { return done_atom_v; },
          [](written_atom) -> caf::result<done_atom> {
            return caf::make_error(Fault::failed, std::string("no space left"));
          }};
}

/// An environment actor that never has captured its state.
caf::behavior never_saves(caf::stateful_actor<std::vector<Done>>* self) {
  return {[self](save_atom, const std::string&) -> caf::result<done_atom> {
            auto promise = self->make_response_promise<done_atom>();
            self->state.push_back(promise);
            return promise;
          },
          [](tick_atom) {}};
}

struct CheckpointsFixture : HeadFixture {
  TemporaryFolder temporary;
  std::vector<std::string> failures;
  std::optional<RunCheckpoints> checkpoints;

  CheckpointsFixture() {
    folder = temporary.path();
    config.workload = [] { return nullptr; };
    config.checkpoint.minutes = 0;
    config.checkpoint.keep_best = 1;
    actors.start_services(0);
    checkpoints.emplace(context, actors,
                        [this](const std::string& problem) { failures.push_back(problem); });
  }

  void add(const ActorKey& key, const caf::actor& fake) {
    fakes.push_back(fake);
    announce(key, fake);
    actors.send(actors.checkpointer(), subscribe_atom_v, key.first, key.second, fake);
  }
  void lose(const ActorKey& key) {
    actors.send(actors.checkpointer(), lost_atom_v, key.first, key.second);
  }
  /// Lets the fakes finish what they write, now and later.
  void finish_writing() {
    on_update = [this] {
      for (const auto& fake : fakes)
        caf::anon_send(fake, tick_atom_v);
    };
  }
  static wire::RunState state_after(std::int64_t updates) {
    wire::RunState state;
    state.set_updates(updates);
    return state;
  }
};

constexpr ActorKey kLearner{Role::learner, 0}, kEnvironment{Role::environment, 0};

TEST_CASE_FIXTURE(CheckpointsFixture,
                  "The final checkpoint waits for one that an actor's death has interrupted") {
  add(kLearner, system.spawn(writes_slowly));
  actors.ask<done_atom>(actors.checkpointer(), 60s, "capturing", save_atom_v,
                        (folder / "checkpoints").string(), encode(state_after(3)));
  finish_writing();
  const std::filesystem::path last = checkpoints->write(state_after(5));
  CHECK(last == folder / "checkpoints/5");
  CHECK(read_manifest(last).state().updates() == 5);
  CHECK(read_manifest(folder / "checkpoints/3").state().updates() == 3);
}

TEST_CASE_FIXTURE(CheckpointsFixture, "A checkpoint that a learner's death interrupts is due at "
                                      "once, with the same evaluation") {
  add(kLearner, system.spawn(writes_slowly));
  checkpoints->note_evaluation({.updates = 2, .returns = {5}});
  CHECK(checkpoints->due());
  checkpoints->begin(state_after(3));
  CHECK(checkpoints->writing());
  actors.forget(kLearner, false);
  handle_until([this] { return !checkpoints->writing(); });
  CHECK(failures.size() == 1);
  CHECK(checkpoints->interrupted());
  CHECK(checkpoints->due());
  add(kLearner, system.spawn(writes_slowly));
  finish_writing();
  checkpoints->begin(state_after(4));
  handle_until([this] { return !checkpoints->writing(); });
  CHECK_FALSE(checkpoints->due());
  const auto saved = read_manifest(folder / "checkpoints/4").state();
  CHECK(saved.evaluation_return() == 5);
  CHECK(saved.evaluation_updates() == 2);
}

TEST_CASE_FIXTURE(CheckpointsFixture, "The death of an environment actor whose state is saved does "
                                      "not fail a checkpoint") {
  add(kLearner, system.spawn(writes_slowly));
  add(kEnvironment, system.spawn(writes_slowly));
  checkpoints->begin(state_after(3));
  lose(kEnvironment);
  finish_writing();
  handle_until([this] { return !checkpoints->writing(); });
  CHECK(failures.empty());
  CHECK(checkpoints->newest() == (folder / "checkpoints/3").string());
}

TEST_CASE_FIXTURE(CheckpointsFixture, "A checkpoint that a full disk prevents is not repeated at "
                                      "once, and its evaluation does not outrank later ones") {
  add(kLearner, system.spawn(fails_to_write));
  checkpoints->note_evaluation({.updates = 2, .returns = {5}});
  checkpoints->begin(state_after(3));
  handle_until([this] { return !checkpoints->writing(); });
  CHECK(failures == std::vector<std::string>{"no space left"});
  CHECK_FALSE(checkpoints->due());
  checkpoints->note_evaluation({.updates = 6, .returns = {4}});
  CHECK(checkpoints->due());
}

TEST_CASE_FIXTURE(CheckpointsFixture, "A checkpoint whose capture a death prevents begins again "
                                      "when the other actors have written their parts of it") {
  add(kLearner, system.spawn(writes_slowly));
  add(kEnvironment, system.spawn(never_saves));
  checkpoints->note_evaluation({.updates = 2, .returns = {5}});
  on_update = [this] {
    actors.lost().insert(kEnvironment);
    lose(kEnvironment);
  };
  CHECK_THROWS_AS(checkpoints->begin(state_after(3)), ActorLost);
  CHECK(checkpoints->writing());
  CHECK_FALSE(checkpoints->due());
  finish_writing();
  handle_until([this] { return !checkpoints->writing(); });
  CHECK(checkpoints->due());
}

} // namespace
} // namespace troupe::actors
