#include "actors/replay_actor.hpp"

#include "actors/messages.pb.h"
#include "actors/system.hpp"

namespace troupe::actors {

const char* ReplayState::name = "replay";

namespace {

using Self = ReplayActor::stateful_pointer<ReplayState>;

caf::result<SamplePtr> sample(Self self, std::uint32_t replica, std::uint64_t number,
                              std::uint32_t rows) {
  auto& state = self->state;
  if (rows == 0 || replica >= static_cast<std::uint32_t>(state.options.replicas))
    return caf::make_error(Fault::bad_request, "sample of " + std::to_string(rows)
                                                   + " rows for replica " + std::to_string(replica)
                                                   + ": at least 1 row, replica below "
                                                   + std::to_string(state.options.replicas));
  auto promise = self->make_response_promise<SamplePtr>();
  auto serve = [self, rows, promise]() mutable {
    self->state.shard->sample(rows, [promise](std::vector<replay::Item> items) mutable {
      if (items.empty()) {
        promise.deliver(caf::make_error(Fault::stopping,
                                        std::string("the shard stopped before it could sample")));
        return;
      }
      auto made = std::make_shared<Sample>();
      made->items = std::move(items);
      promise.deliver(SamplePtr(std::move(made)));
    });
  };
  if (!state.options.in_turn) {
    serve();
    return promise;
  }
  state.turns.emplace(number * static_cast<std::uint64_t>(state.options.replicas) + replica,
                      std::move(serve));
  while (!state.turns.empty() && state.turns.begin()->first == state.next_turn) {
    auto next = std::move(state.turns.begin()->second);
    state.turns.erase(state.turns.begin());
    ++state.next_turn;
    next();
  }
  return promise;
}

Encoded report(Self self) {
  const auto stats = self->state.shard->table().stats();
  wire::ShardReport made;
  made.set_shard(self->state.options.shard);
  made.set_items(stats.items);
  made.set_bytes(stats.bytes);
  made.set_inserted(stats.inserted);
  made.set_sampled(stats.sampled);
  made.set_duplicates(stats.dropped_duplicates);
  made.set_waiting(self->state.shard->why_waiting());
  return encode(made);
}

} // namespace

ReplayActor::behavior_type replay_actor(Self self, ReplayOptions options) {
  self->state.options = options;
  self->state.shard =
      std::make_unique<replay::Shard>(options.table, options.transitions, options.seed);
  self->set_exit_handler([self](caf::exit_msg& why) {
    self->state.turns.clear();
    self->state.shard->cancel_all();
    self->quit(std::move(why.reason));
  });
  return {
      [self](insert_atom, const InsertionPtr& insertion) -> caf::result<done_atom> {
        auto promise = self->make_response_promise<done_atom>();
        if (!self->state.shard->insert(insertion,
                                       [promise]() mutable { promise.deliver(done_atom_v); }))
          return caf::make_error(Fault::late,
                                 std::string("too many insertions wait for this shard"));
        return promise;
      },
      [self](sample_atom, std::uint32_t replica, std::uint64_t number, std::uint32_t rows) {
        return sample(self, replica, number, rows);
      },
      [self](report_atom) { return report(self); },
      [self](open_atom, bool open) {
        self->state.shard->set_open(open);
        return done_atom_v;
      },
      [self](save_atom, const std::string& path) -> caf::result<done_atom> {
        try {
          self->state.shard->table().save(path);
        } catch (const std::exception& e) {
          return failure(e);
        }
        return done_atom_v;
      },
      [self](load_atom, const std::string& path) -> caf::result<done_atom> {
        try {
          self->state.shard->table().load(path);
        } catch (const std::exception& e) {
          return failure(e);
        }
        return done_atom_v;
      },
      [](tick_atom) {},
  };
}

} // namespace troupe::actors
