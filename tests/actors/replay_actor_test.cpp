#include "tests/actor_fixture.hpp"

#include "actors/messages.pb.h"
#include "actors/replay_actor.hpp"
#include "replay/writer.hpp"

namespace troupe::actors {
namespace {

const replay::TransitionSpec kStates{.frame = {"state", env::ElementType::float32, {2}},
                                     .stack = 1,
                                     .action_size = 1,
                                     .n_step = 1,
                                     .discount = 0.9};

struct ReplayFixture : tests::ActorFixture {
  ReplayActor replay;
  replay::TransitionWriter writer{kStates, 1};
  bool begun = false;

  explicit ReplayFixture(bool in_turn = false, double samples_per_insert = 1)
      : replay(system.spawn(replay_actor,
                            ReplayOptions{.shard = 3,
                                          .replicas = 2,
                                          .in_turn = in_turn,
                                          .table = {.min_items = 2,
                                                    .samples_per_insert = samples_per_insert,
                                                    .error_buffer = 4,
                                                    .deterministic = in_turn},
                                          .transitions = kStates,
                                          .seed = 7})) {}

  InsertionPtr items(int count) {
    const float action = 0.5F;
    if (!begun)
      writer.begin();
    begun = true;
    for (int i = 0; i < count; ++i)
      writer.append({&action, 1}, 1.0F, 1.0F, false);
    return writer.take();
  }
};

TEST_CASE_FIXTURE(ReplayFixture,
                  "a sample asked too early is answered by the insert that makes it possible") {
  auto pending = self->request(replay, caf::infinite, sample_atom_v, std::uint32_t{0},
                               std::uint64_t{0}, std::uint32_t{1});
  deliver_all();
  CHECK_FALSE(self->has_next_message());

  ask<done_atom>(replay, insert_atom_v, items(2));

  pending.receive([](SamplePtr& sample) { CHECK(sample->items.size() == 1); },
                  [this](caf::error& e) { FAIL(explain(system, e)); });
}

TEST_CASE_FIXTURE(ReplayFixture,
                  "an insert too far ahead waits for samples, and opening the shard lets it in") {
  ask<done_atom>(replay, insert_atom_v, items(2));
  ask<done_atom>(replay, insert_atom_v, items(8)); // its first item is allowed, so all of it is
  auto pending = self->request(replay, caf::infinite, insert_atom_v, items(1));
  deliver_all();
  CHECK_FALSE(self->has_next_message());
  const auto report = decode<wire::ShardReport>(ask<Encoded>(replay, report_atom_v));
  CHECK(report.items() == 10);
  CHECK(report.shard() == 3);
  CHECK_FALSE(report.waiting().empty());

  ask<done_atom>(replay, open_atom_v, true);

  pending.receive([](done_atom) {}, [this](caf::error& e) { FAIL(explain(system, e)); });
}

TEST_CASE_FIXTURE(ReplayFixture, "a stopping shard answers those who wait for a sample") {
  auto pending = self->request(replay, caf::infinite, sample_atom_v, std::uint32_t{0},
                               std::uint64_t{0}, std::uint32_t{1});
  deliver_all();

  caf::anon_send_exit(replay, caf::exit_reason::user_shutdown);
  deliver_all();

  pending.receive([](SamplePtr&) { FAIL("expected a fault"); },
                  [](caf::error& e) { CHECK((e == Fault::stopping)); });
}

TEST_CASE_FIXTURE(ReplayFixture,
                  "asking for nothing, or as a replica that is not there, is refused") {
  for (const auto& [replica, rows] : {std::pair{0U, 0U}, std::pair{2U, 1U}}) {
    auto pending =
        self->request(replay, caf::infinite, sample_atom_v, replica, std::uint64_t{0}, rows);
    deliver_all();
    pending.receive([](SamplePtr&) { FAIL("expected a fault"); },
                    [](caf::error& e) { CHECK((e == Fault::bad_request)); });
  }
}

struct InTurn : ReplayFixture {
  InTurn() : ReplayFixture(true) {}
};

TEST_CASE("in a deterministic run two replicas get the same samples whoever asks first") {
  std::vector<std::uint64_t> keys[2];
  for (const bool second_first : {false, true}) {
    InTurn fixture;
    fixture.ask<done_atom>(fixture.replay, insert_atom_v, fixture.items(100));
    std::vector<std::uint64_t> got[2];
    for (const std::uint32_t replica : second_first ? std::vector{1U, 0U} : std::vector{0U, 1U})
      fixture.self->send(fixture.replay, sample_atom_v, replica, std::uint64_t{0},
                         std::uint32_t{8});
    fixture.deliver_all();
    int at = 0; // answers come in turn: replica 0's first
    while (fixture.self->has_next_message())
      fixture.self->receive([&](SamplePtr& sample) {
        for (const auto& item : sample->items)
          got[at].push_back(item.key);
        ++at;
      });
    REQUIRE(at == 2);
    auto& all = keys[second_first ? 1 : 0];
    all = got[0];
    all.insert(all.end(), got[1].begin(), got[1].end());
  }
  CHECK(keys[0] == keys[1]);
}

} // namespace
} // namespace troupe::actors
