#include "actors/roles/prefetch_actor.hpp"

#include <utility>
#include <vector>

#include "actors/roles/replay_actor.hpp"
#include "replay/writers/n_step_items.hpp"
#include "tests/actor_fixture.hpp"

namespace troupe::actors {
namespace {

const replay::TransitionSpec kNumbers{.frame = {"state", env::ElementType::float32, {2}},
                                      .stack = 1,
                                      .action_size = 1,
                                      .n_step = 1,
                                      .discount = 0.9};

TEST_CASE_FIXTURE(tests::ActorFixture,
                  "A prefetcher waits for samples for any time and says what it waits for") {
  const ReplayActor shard =
      system.spawn(replay_actor, ReplayOptions{.table = {.limiter = {.minimum_items = 2}},
                                               .transitions = kNumbers,
                                               .seed = 7});
  const PrefetchActor prefetch = system.spawn(
      prefetch_actor,
      PrefetchOptions{
          .rows = 1, .shards = {shard}, .transitions = kNumbers, .learner = caf::actor(self)});
  std::string waiting;
  std::int64_t batches = -1; // of the learner
  const auto look = [&] {
    auto pending = self->request(prefetch, caf::infinite, report_atom_v);
    deliver_all();
    pending.receive(
        [&](const std::string& words, std::int64_t full) { waiting = words, batches = full; },
        [&](caf::error& error) { FAIL(explain(system, error)); });
  };
  self->send(prefetch, grant_atom_v, std::int64_t{1});
  for (int i = 0; i < 10; ++i) {
    scheduler.clock().advance_time(std::chrono::minutes(10));
    deliver_all();
  }
  look();
  CHECK(waiting == "waiting for samples from replay 0");
  CHECK(batches == 0);

  auto writer = replay::transition_writer(kNumbers, 1);
  const float action = 0.5F;
  begin_episode(writer);
  for (int i = 0; i < 2; ++i)
    append_step(writer, {&action, 1}, 1.0F, 1.0F, false);
  ask<done_atom>(shard, insert_atom_v, InsertionPtr(writer.take()));
  std::int64_t number = -1;
  self->receive([&](batch_atom, const BatchPtr& batch) { number = batch->number; });
  CHECK(number == 0);
  look();
  CHECK(waiting.empty());
  CHECK(batches == 1);
  caf::anon_send_exit(prefetch, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(shard, caf::exit_reason::user_shutdown);
  deliver_all();
}

TEST_CASE_FIXTURE(tests::ActorFixture,
                  "A batch goes to the learner as often as its items are used, then the next one") {
  const ReplayActor shard = system.spawn(
      replay_actor, ReplayOptions{.in_turn = true,
                                  .table = {.sampler = {.kind = replay::SelectorKind::fifo},
                                            .max_times_sampled = 1,
                                            .limiter = {.kind = replay::RateLimiterKind::queue,
                                                        .queue_items = 8}},
                                  .transitions = kNumbers,
                                  .seed = 7});
  const PrefetchActor prefetch =
      system.spawn(prefetch_actor, PrefetchOptions{.rows = 1,
                                                   .item_uses = 2,
                                                   .ahead = 0,
                                                   .shards = {shard},
                                                   .transitions = kNumbers,
                                                   .learner = caf::actor(self)});
  auto writer = replay::transition_writer(kNumbers, 1);
  const float action = 0.5F;
  begin_episode(writer);
  for (const float reward : {10.0F, 11.0F, 12.0F})
    append_step(writer, {&action, 1}, reward, 1.0F, false);
  ask<done_atom>(shard, insert_atom_v, InsertionPtr(writer.take()));

  std::vector<std::pair<std::int64_t, float>> seen; // numbers of updates, rewards
  const auto update = [&] {
    BatchPtr used;
    self->receive([&](batch_atom, const BatchPtr& batch) { used = batch; });
    seen.emplace_back(used->number, used->tensors.at("reward").item<float>());
    self->send(prefetch, batch_atom_v, used);
    deliver_all();
  };
  const auto grant = [&](std::int64_t updates) {
    self->send(prefetch, grant_atom_v, updates);
    deliver_all();
  };
  grant(5);
  for (int i = 0; i < 5; ++i)
    update();
  grant(6); // the third item has a use left
  update();
  CHECK(seen
        == std::vector<std::pair<std::int64_t, float>>{
            {0, 10}, {1, 10}, {2, 11}, {3, 11}, {4, 12}, {5, 12}});
  grant(7);
  auto report = self->request(prefetch, caf::infinite, report_atom_v);
  deliver_all();
  report.receive([&](const std::string& words,
                     std::int64_t) { CHECK(words == "waiting for samples from replay 0"); },
                 [&](caf::error& error) { FAIL(explain(system, error)); });
  caf::anon_send_exit(prefetch, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(shard, caf::exit_reason::user_shutdown);
  deliver_all();
}

} // namespace
} // namespace troupe::actors
