#include "actors/roles/replay_actor.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "actors/protocol/messages.pb.h"
#include "actors/protocol/process_time.hpp"
#include "actors/protocol/system.hpp"
#include "actors/roles/checkpoint.hpp"
#include "actors/roles/files.hpp"
#include "replay/recordings/recording.hpp"
#include "replay/storage/storage_error.hpp"
#include "replay/table/table_config_wire.hpp"
#include "replay/writers/n_step_items.hpp"

namespace troupe::actors {

const char* ReplayState::name = "replay";

namespace {

using ReplaySelf = ReplayActor::stateful_pointer<ReplayState>;

constexpr std::chrono::seconds kReplayPatience = kRequestDeadline - std::chrono::seconds(2);
constexpr std::chrono::seconds kTick{1};

/// Starts calling the shard's tick() while requests may wait, because the shard has no clock.
void watch_deadlines(ReplaySelf self) {
  if (!std::exchange(self->state.ticking, true))
    self->delayed_send(self, kTick, tick_atom_v);
}

/// Insertions wait up to a deadline, because their senders repeat them; samples have none.
template <class Promise>
replay::WaitOptions wait_options(ReplaySelf self, Promise promise, std::string who,
                                 replay::Deadline deadline = replay::Deadline::max()) {
  return {.deadline = deadline,
          .who = std::move(who),
          .refused = [self, promise](const std::string& why) mutable {
            promise.deliver(
                caf::make_error(self->state.stopping ? Fault::stopping : Fault::late, why));
          }};
}

/// Runs `what` now, or after all earlier turns.
void in_turn(ReplayState& state, std::uint64_t turn, std::function<void()> what) {
  state.turns.emplace(turn, std::move(what));
  while (!state.turns.empty() && state.turns.begin()->first == state.next_turn) {
    auto next = std::move(state.turns.begin()->second);
    state.turns.erase(state.turns.begin());
    ++state.next_turn;
    next();
  }
}

/// Returns the turn of a replica's request `number`. An update comes after all samples of that
/// number.
std::uint64_t turn_of(const ReplayState& state, std::uint32_t replica, std::uint64_t number,
                      bool update) {
  const auto replicas = static_cast<std::uint64_t>(state.options.replicas);
  const std::uint64_t rounds =
      state.options.in_turn_updates ? 2 * number + (update ? 1 : 0) : number;
  return rounds * replicas + replica;
}

caf::result<SamplePtr> sample(ReplaySelf self, std::uint32_t replica, std::uint64_t number,
                              std::uint32_t rows) {
  auto& state = self->state;
  if (rows == 0 || replica >= static_cast<std::uint32_t>(state.options.replicas))
    return caf::make_error(Fault::bad_request,
                           "sample of " + std::to_string(rows) + " rows for replica "
                               + std::to_string(replica)
                               + ": it needs at least 1 row and a replica below "
                               + std::to_string(state.options.replicas));
  auto promise = self->make_response_promise<SamplePtr>();
  auto serve = [self, rows, replica, promise]() mutable {
    const collectives::Timeline::Span span(self->state.spans.timeline().get(), "sample");
    const auto answer = [promise](std::vector<replay::Item> items) mutable {
      auto made = std::make_shared<Sample>();
      made->items = std::move(items);
      promise.deliver(SamplePtr(std::move(made)));
    };
    self->state.shard->sample(rows, answer,
                              wait_options(self, promise, "learner " + std::to_string(replica)));
    watch_deadlines(self);
  };
  if (state.options.in_turn)
    in_turn(state, turn_of(state, replica, number, false), std::move(serve));
  else
    serve();
  return promise;
}

caf::result<done_atom> update(ReplaySelf self, std::uint32_t replica, std::uint64_t number,
                              const PrioritiesPtr& priorities) {
  auto promise = self->make_response_promise<done_atom>();
  auto serve = [self, priorities, promise]() mutable {
    try {
      self->state.shard->with_table([&](replay::Table& table) {
        table.update_priorities(priorities->keys, priorities->values);
      });
      promise.deliver(done_atom_v);
    } catch (const std::exception& e) {
      promise.deliver(failure(e));
    }
  };
  if (self->state.options.in_turn && self->state.options.in_turn_updates)
    in_turn(self->state, turn_of(self->state, replica, number, true), std::move(serve));
  else
    serve();
  return promise;
}

caf::result<done_atom> insert(ReplaySelf self, const InsertionPtr& insertion) {
  auto promise = self->make_response_promise<done_atom>();
  const collectives::Timeline::Span span(self->state.spans.timeline().get(), "insert");
  try {
    if (!self->state.shard->insert(
            insertion, [promise]() mutable { promise.deliver(done_atom_v); },
            wait_options(self, promise, {}, std::chrono::steady_clock::now() + kReplayPatience)))
      return caf::make_error(Fault::late,
                             std::string("too many insertions are waiting for this shard"));
  } catch (const std::exception& e) {
    return failure(e);
  }
  watch_deadlines(self);
  return promise;
}

ProtoBytes report(ReplaySelf self) {
  const auto shard = self->state.shard->report();
  wire::ShardReport made;
  made.set_shard(self->state.options.shard);
  replay::put(shard.stats, *made.mutable_stats());
  made.set_waiting(shard.why_waiting);
  made.set_waiting_insertions(static_cast<std::int64_t>(shard.waiting_insertions));
  made.set_waiting_samples(static_cast<std::int64_t>(shard.waiting_samples));
  made.set_problem(self->state.snapshot_problem);
  made.set_spill_problem(shard.spill_error);
  *made.mutable_process() = process_time();
  const auto& snapshot = self->state.snapshot;
  made.set_snapshot(snapshot.empty() ? 0 : std::stoll(snapshot.filename().string()));
  return encode(made);
}

std::shared_ptr<const replay::TableSnapshot> captured(ReplayState& state) {
  auto snapshot = std::make_shared<replay::TableSnapshot>();
  state.shard->with_table([&](const replay::Table& table) { *snapshot = table.snapshot(); });
  return snapshot;
}

/// Writes the table as it is now to the folder of a checkpoint or snapshot, linking unchanged files
/// from `previous`.
void write_table(ReplayState& state, const std::filesystem::path& folder,
                 const std::filesystem::path& previous, bool checkpoint) {
  const auto done = [&state, folder, checkpoint](const std::string& problem, auto) {
    state.unwritten = state.unwritten && !problem.empty();
    if (checkpoint)
      return;
    state.snapshot_problem = problem;
    if (!problem.empty())
      return;
    state.snapshot = folder;
    state.snapshots->remove_old();
  };
  const auto write = [table = captured(state), folder, previous,
                      snapshots = checkpoint ? std::nullopt : state.snapshots] {
    if (snapshots)
      snapshots->write(*table, folder, previous);
    else
      replay::write_checkpoint(*table, folder, previous);
  };
  state.writes->add({.write = write, .done = done, .checkpoint = checkpoint});
}

void save(ReplayState& state, const std::string& folder, const std::string& previous) {
  state.writes->begin_checkpoint();
  std::filesystem::path linked;
  if (++state.checkpoints % replay::kWholeCheckpointPeriod == 0)
    state.whole_snapshot = true; // later checkpoints link to it
  else if (!state.snapshot.empty())
    linked = state.snapshot;
  else if (!state.unwritten)
    linked = previous;
  write_table(state, folder, linked, true);
}

void take_snapshot(ReplaySelf self) {
  auto& state = self->state;
  self->delayed_send(self, state.options.snapshot_period, save_atom_v);
  if (state.writes->is_writing(false))
    return;
  try {
    write_table(state, state.snapshots->next(),
                std::exchange(state.whole_snapshot, false) ? std::filesystem::path()
                                                           : state.snapshot,
                false);
  } catch (const std::exception& e) {
    state.snapshot_problem = e.what();
  }
}

/// The first incarnation of a shard starts empty, a later one from the newest snapshot.
void load_snapshot(ReplayState& state, replay::Table& table) {
  state.snapshots.emplace(state.options.snapshot_folder, state.options.incarnation);
  state.unwritten = state.options.incarnation > 0;
  for (const std::filesystem::path& newest : state.snapshots->found())
    try {
      table.load(newest, replay::Table::ConfigChange::accept);
      state.snapshot = newest;
      return;
    } catch (const replay::StorageError& damage) { // try the one before it
      state.snapshot_problem = damage.what();
    }
}

/// Loads a shard's folder. From a folder of all shards it loads its own, or its part of all of them
/// if their number has changed. Returns a message for the log, or "".
std::string load(ReplayState& state, replay::Table& table, const std::filesystem::path& path) {
  if (std::filesystem::exists(path / "manifest"))
    return table.load(path, replay::Table::ConfigChange::accept);
  const auto shards = saved_shards(path);
  const auto mine = static_cast<std::size_t>(state.options.shard);
  if (shards.size() == static_cast<std::size_t>(state.options.shards)) {
    const auto changed = table.load(shards.at(mine), replay::Table::ConfigChange::accept);
    return changed.empty()
               ? ""
               : "was saved with another configuration: " + changed + "; the new one applies";
  }
  const auto lost = table.load_part(shards, static_cast<std::uint32_t>(mine),
                                    static_cast<std::uint32_t>(state.options.shards));
  state.unwritten = true;
  return lost == 0 ? ""
                   : "has no room for its " + std::to_string(lost)
                         + " oldest items: raise replay.capacity_items or "
                           "replay.capacity_bytes to keep them";
}

/// Returns the shard's handlers, which also record spans.
replay::ShardHandlers recorded_handlers(const std::shared_ptr<replay::HostedShard>& shard,
                                        const std::shared_ptr<collectives::Timeline>& timeline) {
  replay::ShardHandlers made = replay::handlers_of(shard);
  made.insert = [inner = std::move(made.insert), timeline](InsertionPtr insertion,
                                                           std::function<void()> accepted) {
    const collectives::Timeline::Span span(timeline.get(), "insert");
    inner(std::move(insertion), std::move(accepted));
  };
  made.sample = [inner = std::move(made.sample), timeline](
                    std::int64_t count, std::function<void(std::vector<replay::Item>)> answer,
                    replay::WaitOptions wait) {
    const collectives::Timeline::Span span(timeline.get(), "sample");
    inner(count, std::move(answer), std::move(wait));
  };
  return made;
}

std::unique_ptr<replay::ShardServer> serve(const ReplayOptions& options,
                                           const std::shared_ptr<replay::HostedShard>& shard,
                                           const std::shared_ptr<collectives::Timeline>& timeline) {
  replay::ShardHandlers handlers = recorded_handlers(shard, timeline);
  handlers.set_limiter = nullptr; // only the head may change it, by a message to the actor
  const auto at = [&](const std::string& endpoint) {
    return std::make_unique<replay::ShardServer>(
        *options.context,
        std::vector<replay::ServedTable>{{.signature = options.transitions,
                                          .handlers = handlers,
                                          .transitions = options.transitions}},
        replay::ShardServerOptions{.endpoint = endpoint});
  };
  try {
    return at(options.endpoint);
  } catch (const std::runtime_error&) { // this shard's former endpoint is in use
    return at(options.endpoint.substr(0, options.endpoint.rfind(':')) + ":*");
  }
}

/// Inserts the shard's part of the recorded episodes.
void fill(const ReplayOptions& options, replay::Table& table) {
  const replay::Recording recording(options.recording);
  const std::string name = options.recording.string();
  check_fits(recording.spec(), options.transitions, options.recording);
  auto writer =
      replay::transition_writer(options.transitions, static_cast<std::uint64_t>(options.shard) + 1);
  const auto step = static_cast<std::size_t>(options.shards);
  for (auto i = static_cast<std::size_t>(options.shard); i < recording.episodes().size();
       i += step) {
    recording.read(i).write(writer);
    if (const auto insertion = writer.take())
      table.insert(*insertion);
  }
  const replay::TableStats stats = table.stats();
  if (stats.items == 0)
    throw std::invalid_argument("the recording " + name + " has no item for replay shard "
                                + std::to_string(options.shard) + " of "
                                + std::to_string(options.shards)
                                + "; record more episodes, or lower replay.shards");
  if (stats.items < stats.inserted)
    throw std::invalid_argument(
        "replay has room for " + std::to_string(stats.items) + " of the "
        + std::to_string(stats.inserted) + " items that shard " + std::to_string(options.shard)
        + " gets from the recording " + name
        + "; raise replay.capacity_items or replay.capacity_bytes, or set replay.disk_bytes");
}

void start_table(ReplayState& state) {
  const ReplayOptions& options = state.options;
  state.shard = std::make_shared<replay::HostedShard>(replay::HostedTable{
      .config = options.table,
      .signature = options.transitions,
      .seed = options.seed,
      .spill = {.folder = options.spill_folder, .max_disk_bytes = options.spill_bytes}});
  if (!options.snapshot_folder.empty())
    state.shard->with_table([&](replay::Table& table) { load_snapshot(state, table); });
  if (!options.recording.empty())
    state.shard->with_table([&](replay::Table& table) { fill(options, table); });
  if (!options.endpoint.empty())
    state.server = serve(options, state.shard, state.spans.timeline());
}

} // namespace

ReplayActor::behavior_type replay_actor(ReplaySelf self, ReplayOptions options) {
  self->state.options = std::move(options);
  self->state.writes.emplace(self);
  try {
    start_table(self->state);
  } catch (const std::exception& e) {
    self->quit(failure(e));
    return ReplayActor::behavior_type::make_empty_behavior();
  }
  if (!self->state.options.snapshot_folder.empty())
    self->delayed_send(self, self->state.options.snapshot_period, save_atom_v);
  self->set_exit_handler([self](caf::exit_msg& why) {
    self->state.stopping = true;
    self->state.turns.clear();
    self->state.server.reset(); // other processes see it close; a refusal would end a learner
    self->state.shard->stop();
    self->quit(std::move(why.reason));
  });
  return {
      [self](insert_atom, const InsertionPtr& insertion) { return insert(self, insertion); },
      [self](sample_atom, std::uint32_t replica, std::uint64_t number, std::uint32_t rows) {
        return sample(self, replica, number, rows);
      },
      [self](update_atom, std::uint32_t replica, std::uint64_t number,
             const PrioritiesPtr& priorities) { return update(self, replica, number, priorities); },
      [self](limit_atom, const ProtoBytes& limiter) {
        return done_or_fault([&] {
          self->state.shard->set_limiter(
              replay::limiter_of(decode<replay::wire::Limiter>(limiter)));
        });
      },
      [self](spans_atom, const ProtoBytes& order) {
        return encode(self->state.spans.answer(decode<wire::SpansOrder>(order)));
      },
      [self](report_atom) { return report(self); },
      [self](open_atom, bool open) {
        self->state.shard->bypass_rate_limiter(open);
        return done_atom_v;
      },
      [self](save_atom, const std::string& folder, const std::string& previous) {
        return done_or_fault([&] { save(self->state, folder, previous); });
      },
      [self](written_atom) { return self->state.writes->checkpoint_written(); },
      [self](written_atom, const std::string& problem) { self->state.writes->on_written(problem); },
      [self](save_atom) { take_snapshot(self); },
      [self](load_atom, const std::string& path) {
        return answer_or_fault([&]() -> caf::result<std::string> {
          auto& state = self->state;
          std::string said;
          state.shard->with_table([&](replay::Table& table) { said = load(state, table, path); });
          if (!state.options.snapshot_folder.empty()) // it may die before the next one is due
            write_table(state, state.snapshots->next(),
                        std::filesystem::exists(std::filesystem::path(path) / "manifest") ? path
                                                                                          : "",
                        false);
          return said;
        });
      },
      [self](hello_atom) -> caf::result<std::string> {
        if (!self->state.server)
          return caf::make_error(Fault::bad_request, std::string("this shard has no endpoint"));
        return self->state.server->endpoint();
      },
      [self](tick_atom) {
        self->state.ticking = false;
        if (self->state.shard->tick(std::chrono::steady_clock::now()) != replay::Deadline::max())
          watch_deadlines(self);
      },
  };
}

} // namespace troupe::actors
