#include "actors/replay_actor.hpp"

#include <algorithm>

#include "actors/checkpoint.hpp"
#include "actors/files.hpp"
#include "actors/messages.pb.h"
#include "actors/system.hpp"
#include "replay/storage_error.hpp"

namespace troupe::actors {

const char* ReplayState::name = "replay";

namespace {

using Self = ReplayActor::stateful_pointer<ReplayState>;

constexpr std::chrono::seconds kPatience = kRequestDeadline - std::chrono::seconds(2);
constexpr std::chrono::seconds kTick{1};
constexpr std::size_t kKeptSnapshots = 2;
/// Of snapshots: a life that was frozen or cut off may still write when the next has begun.
constexpr std::int64_t kNumbersOfALife = 1'000'000;

/// The shard has no clock: it is told the time while somebody waits in it.
void watch_deadlines(Self self) {
  auto& state = self->state;
  if (state.ticking || !state.shard->next_deadline())
    return;
  state.ticking = true;
  self->delayed_send(self, kTick, tick_atom_v);
}

template <class Promise>
replay::Patience patience(Self self, Promise promise, std::string who) {
  return {.deadline = std::chrono::steady_clock::now() + kPatience,
          .who = std::move(who),
          .refused = [self, promise](const std::string& why) mutable {
            promise.deliver(
                caf::make_error(self->state.stopping ? Fault::stopping : Fault::late, why));
          }};
}

/// Does it at once, or when all that come before it are done.
void in_turn(ReplayState& state, std::uint64_t turn, std::function<void()> what) {
  state.turns.emplace(turn, std::move(what));
  while (!state.turns.empty() && state.turns.begin()->first == state.next_turn) {
    auto next = std::move(state.turns.begin()->second);
    state.turns.erase(state.turns.begin());
    ++state.next_turn;
    next();
  }
}

/// Of request `number` of a replica; its update's turn comes after all samples of the number.
std::uint64_t turn_of(const ReplayState& state, std::uint32_t replica, std::uint64_t number,
                      bool update) {
  const auto replicas = static_cast<std::uint64_t>(state.options.replicas);
  const std::uint64_t rounds =
      state.options.in_turn_updates ? 2 * number + (update ? 1 : 0) : number;
  return rounds * replicas + replica;
}

caf::result<SamplePtr> sample(Self self, std::uint32_t replica, std::uint64_t number,
                              std::uint32_t rows) {
  auto& state = self->state;
  if (rows == 0 || replica >= static_cast<std::uint32_t>(state.options.replicas))
    return caf::make_error(Fault::bad_request, "sample of " + std::to_string(rows)
                                                   + " rows for replica " + std::to_string(replica)
                                                   + ": at least 1 row, replica below "
                                                   + std::to_string(state.options.replicas));
  auto promise = self->make_response_promise<SamplePtr>();
  auto serve = [self, rows, replica, promise]() mutable {
    const auto answer = [promise](std::vector<replay::Item> items) mutable {
      auto made = std::make_shared<Sample>();
      made->items = std::move(items);
      promise.deliver(SamplePtr(std::move(made)));
    };
    self->state.shard->sample(rows, answer,
                              patience(self, promise, "learner " + std::to_string(replica)));
    watch_deadlines(self);
  };
  if (state.options.in_turn)
    in_turn(state, turn_of(state, replica, number, false), std::move(serve));
  else
    serve();
  return promise;
}

caf::result<done_atom> update(Self self, std::uint32_t replica, std::uint64_t number,
                              const PrioritiesPtr& priorities) {
  auto promise = self->make_response_promise<done_atom>();
  auto serve = [self, priorities, promise]() mutable {
    try {
      self->state.shard->table().update_priorities(priorities->keys, priorities->values);
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

caf::result<done_atom> insert(Self self, const InsertionPtr& insertion) {
  auto promise = self->make_response_promise<done_atom>();
  try {
    if (!self->state.shard->insert(
            insertion, [promise]() mutable { promise.deliver(done_atom_v); },
            patience(self, promise, {})))
      return caf::make_error(Fault::late, std::string("too many insertions wait for this shard"));
  } catch (const std::exception& e) {
    return failure(e);
  }
  watch_deadlines(self);
  return promise;
}

Encoded report(Self self) {
  const auto stats = self->state.shard->table().stats();
  wire::ShardReport made;
  made.set_shard(self->state.options.shard);
  made.set_items(stats.items);
  made.set_bytes(stats.bytes);
  made.set_disk_bytes(stats.disk_bytes);
  made.set_inserted(stats.inserted);
  made.set_sampled(stats.sampled);
  made.set_duplicates(stats.dropped_duplicates);
  made.set_waiting(self->state.shard->why_waiting());
  made.set_priorities(stats.updated_priorities);
  made.set_late_priorities(stats.late_priorities);
  made.set_sampling_weight(stats.sampling_weight);
  made.set_problem(self->state.snapshot_problem);
  const auto& snapshot = self->state.snapshot;
  made.set_snapshot(snapshot.empty() ? 0 : std::stoll(snapshot.filename().string()));
  return encode(made);
}

/// What is captured is written on a thread of its own, one after the other.
void write_beside(Self self) {
  auto& first = self->state.writes.front();
  auto work = [shard = ReplayActor(self), snapshot = std::move(first.snapshot)](
                  caf::event_based_actor* thread, const std::string& to, const std::string& from) {
    std::string problem;
    try {
      replay::write_checkpoint(snapshot, to, from);
    } catch (const std::exception& e) {
      problem = e.what();
    }
    thread->send(shard, written_atom_v, problem);
  };
  self->spawn<caf::detached>(std::move(work), first.folder.string(), first.previous.string());
}

bool is_writing(const ReplayState& state, bool own) {
  return std::any_of(state.writes.begin(), state.writes.end(),
                     [own](const auto& write) { return write.own == own; });
}

void capture(Self self, const std::filesystem::path& folder, const std::filesystem::path& previous,
             bool own) {
  auto& state = self->state;
  state.writes.push_back({.snapshot = state.shard->table().snapshot(),
                          .folder = folder,
                          .previous = previous,
                          .own = own});
  if (state.writes.size() == 1)
    write_beside(self);
}

caf::result<done_atom> save(Self self, const std::string& folder, const std::string& previous) {
  auto& state = self->state;
  if (is_writing(state, false))
    return caf::make_error(Fault::bad_request,
                           std::string("a checkpoint of this shard is being written already"));
  try {
    state.write_failure = {};
    capture(self, folder,
            !state.snapshot.empty() ? state.snapshot
                                    : std::filesystem::path(state.unwritten ? "" : previous),
            false);
  } catch (const std::exception& e) {
    return failure(e);
  }
  return done_atom_v;
}

void take_snapshot(Self self) {
  auto& state = self->state;
  self->delayed_send(self, state.options.snapshot_period, save_atom_v);
  if (is_writing(state, true))
    return;
  try {
    capture(self, state.options.snapshot_folder / std::to_string(++state.snapshots), state.snapshot,
            true);
  } catch (const std::exception& e) {
    state.snapshot_problem = e.what();
  }
}

caf::result<done_atom> written(Self self) {
  auto& state = self->state;
  if (is_writing(state, false)) {
    auto promise = self->make_response_promise<done_atom>();
    state.waiting_for_write.push_back(promise);
    return promise;
  }
  if (state.write_failure)
    return state.write_failure;
  return done_atom_v;
}

void on_snapshot_written(ReplayState& state, const std::filesystem::path& folder,
                         const std::string& problem) {
  state.snapshot_problem = problem;
  if (!problem.empty())
    return;
  state.snapshot = folder;
  const auto found = numbered_folders(state.options.snapshot_folder);
  std::error_code error; // what cannot be removed stays
  for (std::size_t i = 0; i + kKeptSnapshots < found.size(); ++i)
    std::filesystem::remove_all(found[i].second, error);
}

void on_written(Self self, const std::string& problem) {
  auto& state = self->state;
  const auto write = std::move(state.writes.front());
  state.writes.pop_front();
  if (!state.writes.empty())
    write_beside(self);
  state.unwritten = state.unwritten && !problem.empty();
  if (write.own)
    return on_snapshot_written(state, write.folder, problem);
  if (!problem.empty())
    state.write_failure = caf::make_error(Fault::failed, problem);
  for (auto& promise : std::exchange(state.waiting_for_write, {}))
    if (problem.empty())
      promise.deliver(done_atom_v);
    else
      promise.deliver(state.write_failure);
}

/// The first life of a shard begins empty, a later one as its newest snapshot.
void load_snapshot(ReplayState& state) {
  const auto& folder = state.options.snapshot_folder;
  if (state.options.incarnation == 0)
    std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  state.unwritten = state.options.incarnation > 0;
  const auto found = numbered_folders(folder);
  state.snapshots = static_cast<std::int64_t>(state.options.incarnation) * kNumbersOfALife;
  if (!found.empty())
    state.snapshots = std::max(state.snapshots, found.back().first);
  for (auto at = found.rbegin(); at != found.rend() && state.snapshot.empty(); ++at)
    try {
      state.shard->table().load(at->second, replay::Table::ConfigChange::accept);
      state.snapshot = at->second;
    } catch (const replay::StorageError& damage) { // the one before it, then
      state.snapshot_problem = damage.what();
    }
}

/// From a shard's folder, or from one of all shards: its own where there are as many as now, else
/// its part of all of them. What people should know of it.
std::string load(ReplayState& state, const std::filesystem::path& path) {
  auto& table = state.shard->table();
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
                   : "has no room for " + std::to_string(lost)
                         + " of its items, the oldest: raise replay.capacity_items or "
                           "replay.capacity_bytes to keep them";
}

void start_table(ReplayState& state) {
  const ReplayOptions& options = state.options;
  state.shard = std::make_unique<replay::Shard>(options.table, options.transitions, options.seed);
  if (!options.spill_folder.empty())
    state.shard->table().spill_to(std::make_shared<replay::SegmentStore>(replay::SegmentStoreConfig{
        .folder = options.spill_folder, .max_disk_bytes = options.spill_bytes}));
  if (!options.snapshot_folder.empty())
    load_snapshot(state);
}

} // namespace

ReplayActor::behavior_type replay_actor(Self self, ReplayOptions options) {
  self->state.options = std::move(options);
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
    self->state.shard->cancel_all();
    self->quit(std::move(why.reason));
  });
  return {
      [self](insert_atom, const InsertionPtr& insertion) { return insert(self, insertion); },
      [self](sample_atom, std::uint32_t replica, std::uint64_t number, std::uint32_t rows) {
        return sample(self, replica, number, rows);
      },
      [self](update_atom, std::uint32_t replica, std::uint64_t number,
             const PrioritiesPtr& priorities) { return update(self, replica, number, priorities); },
      [self](limit_atom, const LimiterPtr& limiter) -> caf::result<done_atom> {
        try {
          self->state.shard->set_limiter(*limiter);
        } catch (const std::exception& e) {
          return failure(e);
        }
        return done_atom_v;
      },
      [self](report_atom) { return report(self); },
      [self](open_atom, bool open) {
        self->state.shard->set_open(open);
        return done_atom_v;
      },
      [self](save_atom, const std::string& folder, const std::string& previous) {
        return save(self, folder, previous);
      },
      [self](written_atom) { return written(self); },
      [self](written_atom, const std::string& problem) { on_written(self, problem); },
      [self](save_atom) { take_snapshot(self); },
      [self](load_atom, const std::string& path) -> caf::result<std::string> {
        auto& state = self->state;
        try {
          auto said = load(state, path);
          if (!state.options.snapshot_folder.empty()) // it may die before the next one is due
            capture(self, state.options.snapshot_folder / std::to_string(++state.snapshots),
                    std::filesystem::exists(std::filesystem::path(path) / "manifest") ? path : "",
                    true);
          return said;
        } catch (const std::exception& e) {
          return failure(e);
        }
      },
      [](wire_atom, const std::string&) {}, // for proxies
      [self](tick_atom) {
        self->state.ticking = false;
        self->state.shard->expire(std::chrono::steady_clock::now());
        watch_deadlines(self);
      },
  };
}

} // namespace troupe::actors
