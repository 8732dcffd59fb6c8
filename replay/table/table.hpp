#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "replay/table/table_state.hpp"

namespace troupe::replay {

struct TableSnapshot; // table_checkpoint.hpp

struct TableStats {
  std::int64_t items = 0;
  std::int64_t bytes = 0; // memory of chunks and shapes; a frame that items share counts once
  std::int64_t encoded_chunks = 0; // in memory
  std::int64_t chunks_on_disk = 0;
  std::int64_t disk_bytes = 0;
  std::int64_t failed_spills = 0; // the disk was full or failed; items were removed instead
  std::int64_t inserted = 0;
  std::int64_t sampled = 0;
  std::int64_t dropped_duplicates = 0; // insertions
  std::int64_t updated_priorities = 0;
  std::int64_t late_priorities = 0; // for items that were already removed
  /// Several shards are sampled in proportion to this: the number of items, or the sum of their
  /// weights if the sampler has weights; 0 before the rate limiter allows the first sample.
  double sampling_weight = 0;

  bool operator==(const TableStats&) const = default;
};

/// The items of one shard: a sampler and a remover choose among them, a rate limiter says when.
/// Data and decisions: no thread, clock or socket; one thread at a time.
///
/// Memory may exceed max_bytes by one chunk (the newest item stays), and by more if the remover is
/// not fifo, because a chunk leaves with the last of its items. With a store (spill_to()) the
/// oldest chunks move to disk, and items leave only when the disk is full; chunks that writers
/// still fill stay in memory. Hot paths do not lock, do not throw on valid priorities, and allocate
/// only to grow.
class Table {
public:
  /// Throws std::invalid_argument as check() does.
  Table(const TableConfig& config, const Signature& signature, std::uint64_t seed)
      : state_(config, signature, seed) {}

  /// Adds all items and removes others above the limits (max_items, max_bytes, kMaxShapes); does
  /// not ask the rate limiter. Drops and counts an insertion that its writer sent before
  /// (WriterSequences). Throws std::invalid_argument as check_insertion() does, and changes nothing
  /// then.
  void insert(const Insertion& insertion);

  /// Throws std::invalid_argument on steps of another signature (with the column, what was expected
  /// and what came), on more than kMaxShapes shapes of items, and, if the table uses priorities, on
  /// one that is not 0 to kMaxPriority.
  void check_insertion(const Insertion& insertion) const;

  bool can_insert() const { return state_.limiter.can_insert(size()); }
  bool can_sample(std::int64_t count) const;
  /// True once enough items were inserted for the first sample (min_items).
  bool may_begin(std::int64_t count) const;
  /// While suspended, samples do not count towards max_times_sampled, remove nothing, and any
  /// number is possible. No effect on queues and stacks.
  void suspend_removal(bool suspended) { removal_suspended_ = suspended; }
  /// Fewer than `count` samples are left (max_times_sampled; one item stays unless this is a
  /// queue): only inserts help.
  bool is_starved(std::int64_t count) const { return samples_left() - reserve() < count; }
  /// The largest possible sample.
  std::int64_t most_samples() const;

  /// Which side waits for what, with numbers; "" if neither waits.
  std::string why_blocked(std::int64_t sample_count = 1) const;

  /// Replaces `out` by `count` items chosen by the sampler with replacement, or by as many as are
  /// left (max_times_sampled). Does not ask the rate limiter.
  void sample(std::int64_t count, std::vector<Item>& out);

  /// Gives items new priorities; counts those of removed items. Throws std::invalid_argument naming
  /// key, value and rule, and changes nothing then. No effect if neither sampler nor remover uses
  /// priorities.
  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities);

  bool contains(std::uint64_t key) const { return state_.items.find(key) != TableItems::kAbsent; }
  /// The item of a key that the table contains, as a sample would give it, with probability 0.
  Item item(std::uint64_t key) const;

  /// Moves chunks above max_bytes to this store from now on. insert() then waits for the disk, and
  /// gathering a sample may read from it. The store belongs to this table alone and outlives the
  /// sampled items.
  void spill_to(std::shared_ptr<SegmentStore> store) { state_.chunks.spill_to(std::move(store)); }
  const std::string& spill_error() const { return state_.chunks.spill_error(); } // "": none

  /// Replaces the rate limiter; it starts at drift 0. Throws std::invalid_argument as check() does,
  /// and changes nothing then.
  void set_limiter(const RateLimiterConfig& limiter);

  TableStats stats() const;
  const TableConfig& config() const { return state_.config; }
  const Signature& signature() const { return state_.signature; }

  /// The current state for a checkpoint, which another thread may write while the table is used.
  /// Copies about 30 bytes per item; shares the chunks.
  TableSnapshot snapshot() const;

  enum class ConfigChange { refuse, accept };

  /// Replaces the contents by a checkpoint; sampling continues exactly as after its snapshot().
  /// Returns how this table's configuration differs from the saved one, "" if it does not. With a
  /// store, chunks above max_bytes stay in the checkpoint's files. Throws std::runtime_error, and
  /// changes nothing then, if the folder is missing, damaged, foreign or of another version, if the
  /// Signature differs, or if the TableConfig differs (the message lists the differences).
  /// ConfigChange::accept allows another TableConfig: this table's applies, the rate limiter starts
  /// at drift 0, and items above the limits are removed.
  std::string load(const std::filesystem::path& folder, ConfigChange change = ConfigChange::refuse);

  /// Replaces the contents by part `part` of `parts` of several saved tables: its items by
  /// reshard(), with their priorities and times sampled, oldest first and with new keys, and its
  /// even_share() of the counters. Every part knows every writer, has its own random state and
  /// starts its rate limiter at drift 0. Returns how many items did not fit into this table's
  /// limits. Throws as load() does, and std::invalid_argument without folders or if `part` is out
  /// of range.
  std::int64_t load_part(std::span<const std::filesystem::path> folders, std::uint32_t part,
                         std::uint32_t parts);

private:
  std::int64_t size() const { return state_.items.size(); }
  std::int64_t bytes() const { return state_.chunks.bytes() + state_.shapes.bytes(); }
  void remove(TableItems::Place place) {
    const ItemWindow window = state_.items.remove(place);
    state_.chunks.release(window);
    state_.shapes.release(window.shape);
  }
  void remove_one() { remove(state_.items.choose_removal(state_.random)); }
  void free_memory();
  std::int64_t samples_left() const;
  std::int64_t reserve() const;
  bool expires_by_use() const;
  void fill(TableItems::Place place, Item& item) const;
  void keep_to_limits();

  TableState state_;
  bool removal_suspended_ = false;
  mutable std::shared_ptr<const RowLayout> checked_; // the last layout that fitted
  std::vector<Selected> selected_;                   // of one sample
  std::vector<TableItems::Place> updated_places_;    // of one update
  std::vector<double> updated_priorities_;
};

} // namespace troupe::replay
