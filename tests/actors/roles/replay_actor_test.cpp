#include "tests/actor_fixture.hpp"

#include "actors/protocol/messages.pb.h"
#include "actors/roles/replay_actor.hpp"
#include "replay/service/shard_client.hpp"
#include "replay/table/table_config_wire.hpp"
#include "replay/writers/n_step_items.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

const replay::TransitionSpec kStates{.frame = {"state", env::ElementType::float32, {2}},
                                     .stack = 1,
                                     .action_size = 1,
                                     .n_step = 1,
                                     .discount = 0.9};

struct ReplayFixture : tests::ActorFixture {
  ReplayActor replay;
  replay::Writer writer = replay::transition_writer(kStates, 1);
  bool begun = false;

  explicit ReplayFixture(bool in_turn = false, double samples_per_insert = 1,
                         bool prioritized = false)
      : replay(system.spawn(
          replay_actor,
          ReplayOptions{
              .shard = 3,
              .replicas = 2,
              .in_turn = in_turn,
              .in_turn_updates = prioritized,
              .table = {.sampler = {.kind = prioritized ? replay::SelectorKind::prioritized
                                                        : replay::SelectorKind::uniform},
                        .insert_at_maximum = prioritized,
                        .limiter = {.minimum_items = 2,
                                    .samples_per_insert = samples_per_insert,
                                    .error_buffer = in_turn ? 1e15 : 4}},
              .transitions = kStates,
              .seed = 7})) {}

  ~ReplayFixture() { // a pending tick to itself would keep the actor alive
    caf::anon_send_exit(replay, caf::exit_reason::user_shutdown);
    deliver_all();
  }

  InsertionPtr items(int count) {
    const float action = 0.5F;
    if (!begun)
      begin_episode(writer);
    begun = true;
    for (int i = 0; i < count; ++i)
      append_step(writer, {&action, 1}, 1.0F, 1.0F, false);
    return writer.take();
  }
};

TEST_CASE_FIXTURE(ReplayFixture,
                  "An early sample request is answered by the insertion that makes it possible") {
  auto pending = self->request(replay, caf::infinite, sample_atom_v, std::uint32_t{0},
                               std::uint64_t{0}, std::uint32_t{1});
  deliver_all();
  CHECK_FALSE(self->has_next_message());

  ask<done_atom>(replay, insert_atom_v, items(2));

  pending.receive([](SamplePtr& sample) { CHECK(sample->items.size() == 1); },
                  [this](caf::error& e) { FAIL(explain(system, e)); });
}

TEST_CASE_FIXTURE(ReplayFixture,
                  "An insertion too far ahead waits for samples, and opening the shard admits it") {
  ask<done_atom>(replay, insert_atom_v, items(2));
  ask<done_atom>(replay, insert_atom_v, items(8)); // its first item is allowed, so all of it is
  auto pending = self->request(replay, caf::infinite, insert_atom_v, items(1));
  deliver_all();
  CHECK_FALSE(self->has_next_message());
  const auto report = decode<wire::ShardReport>(ask<ProtoBytes>(replay, report_atom_v));
  CHECK(report.stats().items() == 10);
  CHECK(report.shard() == 3);
  CHECK_FALSE(report.waiting().empty());
  CHECK(report.waiting_insertions() == 1);
  CHECK(report.waiting_samples() == 0);

  ask<done_atom>(replay, open_atom_v, true);

  pending.receive([](done_atom) {}, [this](caf::error& e) { FAIL(explain(system, e)); });
}

TEST_CASE_FIXTURE(ReplayFixture, "A stopping shard answers waiting sample requests with a fault") {
  auto pending = self->request(replay, caf::infinite, sample_atom_v, std::uint32_t{0},
                               std::uint64_t{0}, std::uint32_t{1});
  deliver_all();

  caf::anon_send_exit(replay, caf::exit_reason::user_shutdown);
  deliver_all();

  pending.receive([](SamplePtr&) { FAIL("expected a fault"); },
                  [](caf::error& e) { CHECK((e == Fault::stopping)); });
}

TEST_CASE_FIXTURE(ReplayFixture, "Empty sample requests and unknown replicas are refused") {
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

TEST_CASE("In a deterministic run, two replicas get the same samples in any order of requests") {
  std::vector<std::uint64_t> keys[2];
  for (const bool second_first : {false, true}) {
    InTurn fixture;
    fixture.ask<done_atom>(fixture.replay, insert_atom_v, fixture.items(100));
    std::vector<std::uint64_t> got[2];
    for (const std::uint32_t replica : second_first ? std::vector{1U, 0U} : std::vector{0U, 1U})
      fixture.self->send(fixture.replay, sample_atom_v, replica, std::uint64_t{0},
                         std::uint32_t{8});
    fixture.deliver_all();
    int at = 0; // answers arrive in turn, replica 0's first
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

struct Prioritized : ReplayFixture {
  explicit Prioritized(bool in_turn = false) : ReplayFixture(in_turn, 1, true) {}

  static PrioritiesPtr only(std::uint64_t key, std::uint64_t items) { // all others 0
    auto made = std::make_shared<Priorities>();
    for (std::uint64_t k = 0; k < items; ++k) {
      made->keys.push_back(k);
      made->values.push_back(k == key ? 2 : 0);
    }
    return made;
  }
};

TEST_CASE("Priorities reach the table, and invalid priorities are refused with the reason") {
  Prioritized fixture;
  fixture.ask<done_atom>(fixture.replay, insert_atom_v, fixture.items(50));
  fixture.ask<done_atom>(fixture.replay, update_atom_v, std::uint32_t{0}, std::uint64_t{0},
                         Prioritized::only(17, 60)); // ten of them never existed
  const auto sample = fixture.ask<SamplePtr>(fixture.replay, sample_atom_v, std::uint32_t{0},
                                             std::uint64_t{0}, std::uint32_t{4});
  for (const replay::Item& item : sample->items) {
    CHECK(item.key == 17);
    CHECK(item.probability == 1);
    CHECK(item.table_items == 50);
  }
  const auto report =
      decode<wire::ShardReport>(fixture.ask<ProtoBytes>(fixture.replay, report_atom_v));
  CHECK(report.stats().updated_priorities() == 50);
  CHECK(report.stats().late_priorities() == 10);

  auto bad = std::make_shared<Priorities>();
  bad->keys = {1};
  bad->values = {-1};
  auto pending = fixture.self->request(fixture.replay, caf::infinite, update_atom_v,
                                       std::uint32_t{0}, std::uint64_t{0}, PrioritiesPtr(bad));
  fixture.deliver_all();
  pending.receive([](done_atom) { FAIL("expected a fault"); },
                  [&](caf::error& e) {
                    CHECK(explain(fixture.system, e).find("item 1 is -1") != std::string::npos);
                  });
}

TEST_CASE("In a deterministic run, the priorities of one sample number are applied before the next "
          "samples") {
  Prioritized fixture(true);
  fixture.ask<done_atom>(fixture.replay, insert_atom_v, fixture.items(50));
  const auto ask_sample = [&](std::uint32_t replica, std::uint64_t number) {
    fixture.self->send(fixture.replay, sample_atom_v, replica, number, std::uint32_t{8});
  };
  std::vector<std::vector<std::uint64_t>> got;
  const auto take = [&] {
    fixture.deliver_all();
    while (fixture.self->has_next_message())
      fixture.self->receive(
          [&](SamplePtr& sample) {
            got.emplace_back();
            for (const auto& item : sample->items)
              got.back().push_back(item.key);
          },
          [](done_atom) {});
  };
  ask_sample(1, 1); // far too early
  ask_sample(1, 0);
  take();
  CHECK(got.empty());
  ask_sample(0, 1);
  ask_sample(0, 0);
  take();
  CHECK(got.size() == 2); // the answers to request 0; request 1 waits for both updates
  fixture.self->send(fixture.replay, update_atom_v, std::uint32_t{1}, std::uint64_t{0},
                     Prioritized::only(7, 50));
  take();
  CHECK(got.size() == 2);
  fixture.self->send(fixture.replay, update_atom_v, std::uint32_t{0}, std::uint64_t{0},
                     Prioritized::only(9, 50));
  take();
  REQUIRE(got.size() == 4);
  CHECK(got[2] == std::vector<std::uint64_t>(8, 7)); // replica 1's came last
  CHECK(got[3] == std::vector<std::uint64_t>(8, 7));
}

/// Shards that write their own snapshots, on their own threads.
struct Written {
  SystemConfig config{false};
  caf::actor_system system{config};
  caf::scoped_actor self{system, true};
  TemporaryFolder folder;

  ReplayActor spawn(std::uint64_t incarnation) {
    return system.spawn(replay_actor, ReplayOptions{.table = {.limiter = {.minimum_items = 2,
                                                                          .samples_per_insert = 1,
                                                                          .error_buffer = 1000}},
                                                    .transitions = kStates,
                                                    .snapshot_folder = folder / "shard",
                                                    .snapshot_period = std::chrono::hours(1),
                                                    .incarnation = incarnation});
  }

  wire::ShardReport report(const ReplayActor& shard) {
    wire::ShardReport told;
    self->request(shard, kRequestDeadline, report_atom_v)
        .receive([&](const ProtoBytes& got) { told = decode<wire::ShardReport>(got); },
                 [&](caf::error& error) { FAIL(explain(system, error)); });
    return told;
  }

  void insert(const ReplayActor& shard, const InsertionPtr& insertion) {
    self->request(shard, kRequestDeadline, insert_atom_v, insertion)
        .receive([](done_atom) {}, [&](caf::error& error) { FAIL(explain(system, error)); });
  }

  void snapshot(const ReplayActor& shard, int number) {
    self->send(shard, save_atom_v);
    await_snapshot(shard, number);
  }

  void await_snapshot(const ReplayActor& shard, int number) {
    // Do not look for the folder: the shard starts no other snapshot before it hears that this one
    // is written.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (report(shard).snapshot() != number && std::chrono::steady_clock::now() < deadline) {
    }
    REQUIRE(report(shard).snapshot() == number);
  }

  void checkpoint(const ReplayActor& shard, int number) {
    const auto fails = [&](caf::error& error) { FAIL(explain(system, error)); };
    self->request(shard, kRequestDeadline, save_atom_v,
                  (folder / ("checkpoint-" + std::to_string(number))).string(),
                  (folder / ("checkpoint-" + std::to_string(number - 1))).string())
        .receive([](done_atom) {}, fails);
    self->request(shard, kRequestDeadline, written_atom_v).receive([](done_atom) {}, fails);
  }

  void end(const ReplayActor& shard) {
    self->monitor(shard);
    self->send_exit(shard, caf::exit_reason::user_shutdown);
    self->receive([](const caf::down_msg&) {});
  }
};

TEST_CASE_FIXTURE(Written, "A restarted shard restores its newest valid snapshot") {
  replay::Writer writer = replay::transition_writer(kStates, 1);
  begin_episode(writer);
  const auto items = [&](int count) {
    const float action = 0.5F;
    for (int i = 0; i < count; ++i)
      append_step(writer, {&action, 1}, 1.0F, 1.0F, false);
    return writer.take();
  };
  const ReplayActor first = spawn(0);
  insert(first, items(10));
  snapshot(first, 1);
  insert(first, items(5));
  snapshot(first, 2);
  insert(first, items(3)); // lost
  CHECK(report(first).stats().items() == 18);
  end(first);

  const ReplayActor second = spawn(1);
  CHECK(report(second).stats().items() == 15);
  end(second);

  std::filesystem::resize_file(folder / "shard" / "2" / "manifest", 3);
  const ReplayActor third = spawn(2);
  CHECK(report(third).stats().items() == 10);
  CHECK(!report(third).problem().empty());
  end(third);

  const ReplayActor fourth = spawn(3);
  const ReplayActor fifth = spawn(4); // the previous one is not dead, only frozen
  insert(fifth, items(4));
  snapshot(fifth, 4'000'001);
  self->send(fourth, save_atom_v);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto refused = [&] {
    return report(fourth).problem().find("another process has taken over") != std::string::npos;
  };
  while (!refused() && std::chrono::steady_clock::now() < deadline) {
  }
  CHECK(refused());
  CHECK_FALSE(std::filesystem::exists(folder / "shard" / "3000001"));
  snapshot(fifth, 4'000'002);
  CHECK(report(fifth).problem().empty());
  end(fourth);
  end(fifth);
  const ReplayActor sixth = spawn(5);
  CHECK(report(sixth).stats().items() == 14);
  end(sixth);

  const ReplayActor another_run = spawn(0);
  CHECK(report(another_run).stats().items() == 0);
  end(another_run);
}

TEST_CASE_FIXTURE(Written, "A shard that dies after a restore restarts with the restored items") {
  replay::Writer writer = replay::transition_writer(kStates, 1);
  begin_episode(writer);
  const float action = 0.5F;
  for (int i = 0; i < 10; ++i)
    append_step(writer, {&action, 1}, 1.0F, 1.0F, false);
  const ReplayActor before = spawn(0);
  insert(before, writer.take());
  snapshot(before, 1);
  end(before);
  std::filesystem::rename(folder / "shard" / "1", folder / "checkpoint");

  const ReplayActor resumed = spawn(0);
  self->request(resumed, kRequestDeadline, load_atom_v, (folder / "checkpoint").string())
      .receive([](const std::string&) {}, [&](caf::error& error) { FAIL(explain(system, error)); });
  await_snapshot(resumed, 1); // long before the first period has passed
  end(resumed);
  const ReplayActor second = spawn(1);
  CHECK(report(second).stats().items() == 10);
  end(second);
}

TEST_CASE_FIXTURE(Written, "Every sixteenth checkpoint of a shard, and the next snapshot, are "
                           "written without links to earlier files") {
  replay::Writer writer = replay::transition_writer(kStates, 1);
  begin_episode(writer);
  const float action = 0.5F;
  for (int i = 0; i < 10; ++i)
    append_step(writer, {&action, 1}, 1.0F, 1.0F, false);
  const ReplayActor shard = spawn(0);
  insert(shard, writer.take());
  snapshot(shard, 1);
  for (int number = 1; number <= 16; ++number) {
    CAPTURE(number);
    checkpoint(shard, number);
    const auto written = folder / ("checkpoint-" + std::to_string(number));
    CHECK((replay::shared_files(written) > 0) == (number != 16));
  }
  snapshot(shard, 2);
  CHECK(replay::shared_files(folder / "shard" / "2") == 0);
  snapshot(shard, 3);
  CHECK(replay::shared_files(folder / "shard" / "3") > 0);
  checkpoint(shard, 17);
  CHECK(replay::shared_files(folder / "checkpoint-17") > 0);
  end(shard);
}

TEST_CASE_FIXTURE(ReplayFixture, "Clients of a run's shard cannot change its rate limiter") {
  const auto context = std::make_shared<env::wire::Context>();
  const ReplayActor served =
      system.spawn(replay_actor, ReplayOptions{.table = {.limiter = {.minimum_items = 2}},
                                               .transitions = kStates,
                                               .seed = 7,
                                               .endpoint = "tcp://127.0.0.1:*",
                                               .context = context});
  const auto endpoint = ask<std::string>(served, hello_atom_v);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  replay::ShardClient client(*context, endpoint, kStates);
  CHECK_THROWS_WITH_AS(client.set_limiter({.minimum_items = 1}, deadline),
                       doctest::Contains("clients cannot change this shard's rate limiter"),
                       std::runtime_error);
  caf::anon_send_exit(served, caf::exit_reason::user_shutdown);
  deliver_all();
}

TEST_CASE_FIXTURE(
    ReplayFixture,
    "A changed rate limiter of a running shard answers the requests that it now allows") {
  auto pending = self->request(replay, caf::infinite, sample_atom_v, std::uint32_t{0},
                               std::uint64_t{0}, std::uint32_t{1});
  ask<done_atom>(replay, insert_atom_v, items(1)); // of two
  CHECK_FALSE(self->has_next_message());
  replay::wire::Limiter limiter;
  replay::put({.kind = replay::RateLimiterKind::minimum_size, .minimum_items = 1}, limiter);
  ask<done_atom>(replay, limit_atom_v, encode(limiter));
  pending.receive([](SamplePtr& sample) { CHECK(sample->items.size() == 1); },
                  [this](caf::error& e) { FAIL(explain(system, e)); });
}

} // namespace
} // namespace troupe::actors
