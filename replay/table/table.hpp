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
  // Memory of chunks and shapes; a frame shared by several items counts once
  std::int64_t bytes = 0;
  std::int64_t encoded_chunks = 0; // in memory
  std::int64_t chunks_on_disk = 0;
  std::int64_t disk_bytes = 0;
  std::int64_t failed_spills = 0; // the disk was full or failed; items were removed instead
  std::int64_t inserted = 0;
  std::int64_t sampled = 0;
  std::int64_t dropped_duplicates = 0; // insertions
  std::int64_t updated_priorities = 0;
  std::int64_t late_priorities = 0; // for items that were already removed
  /// A client samples several shards in proportion to this: the number of items, or the sum of
  /// their weights if the sampler uses weights; 0 before the rate limiter allows the first sample.
  double sampling_weight = 0;

  bool operator==(const TableStats&) const = default;
};

/// The items of one shard. A sampler and a remover choose among them, and a rate limiter decides
/// when. A table has no thread, clock or socket and is used by one thread at a time.
///
/// Memory may exceed max_bytes by one chunk (the newest item stays), and by more if the remover is
/// not fifo, because a chunk is removed with the last of its items. With a store (spill_to()) the
/// oldest chunks move to disk, and items are removed only when the disk is full; chunks that
/// writers still fill stay in memory. Hot paths do not lock, do not throw on valid priorities, and
/// allocate only to grow.
class Table {
public:
  /// Throws std::invalid_argument as check() does.
  Table(const TableConfig& config, const Signature& signature, std::uint64_t seed)
      : state_(config, signature, seed) {}

  /// Adds all items and removes others to stay within the limits (max_items, max_bytes,
  /// kMaxShapes); does not consult the rate limiter. A queue or stack removes none because of
  /// max_items, so that each is sampled; its rate limiter lets it exceed max_items by one
  /// insertion, and by the waiting insertions while it is bypassed. An insertion that was accepted
  /// before (WriterSequences) is dropped and counted. Throws std::invalid_argument as
  /// check_insertion() does, without changing anything.
  void insert(const Insertion& insertion);

  /// Throws std::invalid_argument if the steps have another signature (the message names the
  /// column, what was expected and what was received), if the items have more than kMaxShapes
  /// shapes or, if the table uses priorities, if one is not from 0 to kMaxPriority.
  void check_insertion(const Insertion& insertion) const;

  /// Returns whether insert() would drop this insertion of a writer as a duplicate.
  bool has_inserted(std::uint64_t writer, std::uint64_t sequence) const {
    return state_.writers.has(writer, sequence);
  }

  bool can_insert() const { return state_.limiter.can_insert(size()); }
  bool can_sample(std::int64_t count) const;
  /// True once enough items were inserted for the first sample (minimum_items).
  bool may_begin(std::int64_t count) const;
  /// While removal is suspended, samples do not count towards max_times_sampled and remove nothing,
  /// so their number is not limited. Has no effect on queues and stacks.
  void suspend_removal(bool suspended) { removal_suspended_ = suspended; }
  /// True if fewer than `count` samples are left under max_times_sampled, so that the request can
  /// only proceed after an insert. Except in queues, one item always stays.
  bool is_starved(std::int64_t count) const { return samples_left() - reserve() < count; }
  /// Returns the largest number of items that one sample can return.
  std::int64_t most_samples() const;

  /// Says which side waits for what, with numbers; "" if neither waits.
  std::string why_blocked(std::int64_t sample_count = 1) const;

  /// Replaces `out` with `count` items that the sampler chooses with replacement, or with as many
  /// as are left (max_times_sampled). Does not consult the rate limiter.
  void sample(std::int64_t count, std::vector<Item>& out);

  /// Sets the priorities of items; keys of removed items are only counted. Throws
  /// std::invalid_argument naming the key, the value and the rule, without changing anything. Has
  /// no effect if neither sampler nor remover uses priorities.
  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities);

  bool contains(std::uint64_t key) const { return state_.items.find(key) != TableItems::kAbsent; }
  /// Returns the item with this key, which the table must contain, as sample() would, but with
  /// probability 0.
  Item item(std::uint64_t key) const;

  /// From now on moves chunks above max_bytes to this store. insert() then waits for the disk, and
  /// gathering a sample may read from it. The store must not be shared with another table. Sampled
  /// items keep it alive.
  void spill_to(std::shared_ptr<SegmentStore> store) { state_.chunks.spill_to(std::move(store)); }
  const std::string& spill_error() const { return state_.chunks.spill_error(); } // "": none

  /// Replaces the rate limiter; the new one starts at drift 0. Throws std::invalid_argument as
  /// check() does, without changing anything.
  void set_limiter(const RateLimiterConfig& limiter);

  TableStats stats() const;
  const TableConfig& config() const { return state_.config; }
  const Signature& signature() const { return state_.signature; }

  /// Returns the current state for a checkpoint, which another thread may write while the table is
  /// used. Copies about 30 bytes per item and shares the chunks.
  TableSnapshot snapshot() const;

  enum class ConfigChange { refuse, accept };

  /// Replaces the contents with a checkpoint; sampling continues exactly as after its snapshot().
  /// Returns how this table's configuration differs from the saved one; "" if they are equal. With
  /// a store, chunks above max_bytes stay in the checkpoint's files. Throws std::runtime_error,
  /// without changing anything, if the folder is missing, damaged, not a table or of another
  /// version, if the Signature differs, or if the TableConfig differs (the message lists the
  /// differences). ConfigChange::accept allows another TableConfig: this table's configuration
  /// stays, the rate limiter starts at drift 0, and items above the limits are removed.
  std::string load(const std::filesystem::path& folder, ConfigChange change = ConfigChange::refuse);

  /// Replaces the contents with part `part` of `parts` of several saved tables. reshard() chooses
  /// the items of the part; they keep their priorities and times sampled and get new keys, oldest
  /// first. The part gets its even_share() of the counters. Every part knows every writer, has its
  /// own random state and starts its rate limiter at drift 0. Returns how many items did not fit
  /// into this table's limits. Throws as load() does, and std::invalid_argument if there are no
  /// folders or `part` is out of range.
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
  mutable std::shared_ptr<const RowLayout> checked_; // the last layout that matched the signature
  std::vector<Selected> selected_;                   // scratch space of sample()
  std::vector<TableItems::Place> updated_places_;    // scratch space of update_priorities()
  std::vector<double> updated_priorities_;
};

} // namespace troupe::replay
