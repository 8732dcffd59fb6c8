#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/insertion.hpp"
#include "replay/key_index.hpp"
#include "replay/limiter.hpp"
#include "replay/random.hpp"
#include "replay/selector.hpp"
#include "replay/signature.hpp"

namespace troupe::replay {

class Table;
struct TableSnapshot; // table_checkpoint.hpp

constexpr std::size_t kMaxShapes = 65'536;
constexpr std::uint32_t kNoPlace = 0xffffffffU; // of an item or a chunk: there is none

/// Configuration of one shard's table.
struct TableConfig {
  std::int64_t max_items = 1'000'000;
  std::int64_t max_bytes = std::int64_t{4} << 30; // of chunks in memory
  SelectorConfig sampler{.kind = SelectorKind::uniform};
  SelectorConfig remover{.kind = SelectorKind::fifo}; // chooses what leaves above the limits
  std::int64_t max_times_sampled = 0; // an item sampled so often is removed; 0: no limit
  /// Items enter with the greatest priority that any item was ever given (at first 1) and not with
  /// their own, so that each is soon sampled once (Schaul et al. 2016).
  bool insert_at_maximum = false;
  /// Full chunks that nobody else holds any more are encoded, with each insertion at most one more
  /// than it brought.
  Compression compression = Compression::none;
  LimiterConfig limiter = {};

  bool operator==(const TableConfig&) const = default;
};

const char* compression_name(Compression compression); // "none", "packed", …
/// Throws std::invalid_argument with the list of names.
Compression compression_named(const std::string& name);

/// Throws std::invalid_argument naming the key (replay.max_items …), the value and the rule.
void check(const TableConfig& config);

struct TableStats {
  std::int64_t items = 0;
  std::int64_t bytes = 0;          // memory of the chunks held; a frame shared by items counts once
  std::int64_t encoded_chunks = 0; // of those
  std::int64_t chunks_on_disk = 0;
  std::int64_t disk_bytes = 0;    // of these
  std::int64_t failed_spills = 0; // the disk was full, or failed: items left instead
  std::int64_t inserted = 0;
  std::int64_t sampled = 0;
  std::int64_t dropped_duplicates = 0; // insertions
  std::int64_t updated_priorities = 0; // items given a new priority
  std::int64_t late_priorities = 0;    // for items that were gone already
  /// Of several shards each is sampled in proportion to it: its items, or the sum of their weights
  /// where the sampler has such; 0 before the limiter lets samples begin.
  double sampling_weight = 0;

  bool operator==(const TableStats&) const = default;
};

/// Sees what happens in a table, from within it. It may call set_priority() and read; nothing else.
class TableExtension {
public:
  virtual ~TableExtension() = default;
  virtual void on_insert(Table& /*table*/, const Item& /*item*/) {}
  virtual void on_sample(Table& /*table*/, const Item& /*item*/) {}
  virtual void on_update(Table& /*table*/, std::uint64_t /*key*/, double /*before*/,
                         double /*after*/) {}
  virtual void on_remove(Table& /*table*/, std::uint64_t /*key*/, std::int64_t /*times_sampled*/) {}
};

/// The items of one shard; sampler and remover choose among them, the limiter says when. Bytes may
/// exceed max_bytes by one chunk (the newest item stays), and by more where the remover is not
/// fifo: a chunk goes with the last of its items. With a store (spill_to()) chunks go to disk,
/// the oldest first, and items leave only when that is full; chunks that writers still fill stay
/// in memory whatever its limit. Data and decisions: no thread, clock or
/// socket; one thread at a time. Hot paths neither lock nor throw on valid priorities; they
/// allocate to grow.
class Table {
public:
  /// Throws std::invalid_argument as check() does.
  Table(const TableConfig& config, const Signature& signature, std::uint64_t seed);

  /// Adds all items and removes others above the limits, whatever can_insert() says. An insertion
  /// whose sequence this writer has used before is dropped and counted; so is one that is 64 or
  /// more below the writer's newest. Throws std::invalid_argument, with nothing added, on steps of
  /// another signature (column, expected, got), on more than kMaxShapes shapes of items, and on a
  /// priority that is not 0 to kMaxPriority
  /// (where priorities count).
  void insert(const Insertion& insertion);

  /// Throws std::invalid_argument on what insert() would refuse.
  void check_insertion(const Insertion& insertion) const;

  bool can_insert() const { return limiter_.can_insert(size()); }
  bool can_sample(std::int64_t count) const;
  /// Samples may begin at all (min_items): what an open shard asks.
  bool may_begin(std::int64_t count) const;
  /// Samples no longer count for max_times_sampled and remove nothing, so that as many may be had
  /// as are asked for; without effect on queues and stacks.
  void suspend_removal(bool suspended) { removal_suspended_ = suspended; }
  /// Fewer than `count` samples are left in it (max_times_sampled; one stays, unless it is a
  /// queue): only inserts can help.
  bool lacks(std::int64_t count) const { return samples_left() - reserve() < count; }
  /// The most samples that it can ever give at once.
  std::int64_t most_samples() const;

  /// Which side waits for what, in words with numbers; "" when both may move.
  std::string why_blocked(std::int64_t sample_count = 1) const;

  /// Items chosen by the sampler, with replacement, into `out` (replaced), `count` of them or, with
  /// max_times_sampled, as many as there are. Does not ask the limiter, but counts.
  void sample(std::int64_t count, std::vector<Item>& out);

  /// Gives items new priorities; those that are gone are counted. Spans of one length. Throws
  /// std::invalid_argument naming key, value and rule before anything has changed. Without effect
  /// where neither sampler nor remover asks for priorities.
  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities);

  /// The same for one item and unseen by extensions; false when it is gone.
  bool set_priority(std::uint64_t key, double priority);

  bool contains(std::uint64_t key) const { return place_of(key) != KeyIndex::kAbsent; }
  /// The item of a key that is there, as a sample would give it but for its probability (0).
  Item item(std::uint64_t key) const;

  /// Chunks above max_bytes go to this store from now on: insert() then waits for the disk, and a
  /// sampled item may be read from it by whoever gathers. Items leave when the store is full. The
  /// store is this table's alone, and outlives the items that were sampled.
  void spill_to(std::shared_ptr<SegmentStore> store);
  const std::string& spill_error() const {
    return spill_error_;
  } // the last; "" when there was none

  /// Another limiter from now on, at drift 0. Throws std::invalid_argument as check() does; nothing
  /// has changed then.
  void set_limiter(const LimiterConfig& limiter);

  void add_extension(std::shared_ptr<TableExtension> extension);

  TableStats stats() const;
  const TableConfig& config() const { return config_; }
  const Signature& signature() const { return signature_; }

  /// Everything as it is now (items, rows, priorities, counters, random state; extensions keep
  /// theirs) for a checkpoint, which another thread may write while the table goes on. Copies some
  /// 30 bytes an item; chunks are shared.
  TableSnapshot snapshot() const;

  enum class ConfigChange { refuse, accept };

  /// Replaces the contents by a checkpoint's; sampling then goes on exactly as it would have after
  /// snapshot(). Returns how this table's configuration differs from the saved one, "" when it does
  /// not. With a store, what does not fit into max_bytes stays on disk, where the checkpoint has
  /// it. Throws std::runtime_error (the table is unchanged) on a folder that is missing, damaged,
  /// foreign or of another version, whose Signature differs, or whose TableConfig differs (the
  /// message lists each difference). With ConfigChange::accept another TableConfig is fine: this
  /// table's applies, the limiter begins anew at drift 0, items above the limits are removed.
  std::string load(const std::filesystem::path& folder, ConfigChange change = ConfigChange::refuse);

  /// Replaces the contents by part `part` of `parts` of what several tables have saved: of the
  /// items by deal(), with their priorities and how often they were sampled, oldest first and with
  /// new keys; of the counters by dealt_share(). Each part knows every writer, has its own
  /// randomness and begins its limiter anew. Returns how many items had no room within this table's
  /// limits. Throws as load() does, and std::invalid_argument without folders or for a part out of
  /// range.
  std::int64_t load_part(std::span<const std::filesystem::path> folders, std::uint32_t part,
                         std::uint32_t parts);

private:
  friend struct TableSaver;
  friend struct TableLoader;
  using Place = std::uint32_t;
  using BlobPosition = std::pair<std::uint64_t, std::uint64_t>; // segment, offset
  struct Slot {                                                 // an item
    std::uint32_t chunk = 0; // the first; the window goes on in those that follow it
    std::uint32_t begin = 0;
    std::uint32_t rows = 0;
    std::uint32_t history = 0;
    std::uint32_t shape = 0; // in shapes_
  };
  struct Sequences { // of one writer: the newest, and which of the 64 up to it were seen
    std::uint64_t newest = 0;
    std::uint64_t seen = 0; // bit i: newest - i
    std::uint64_t used = 0; // insertions into this table before its last one
  };
  struct Held { // a chunk that items refer to, and how much of it they cover
    std::shared_ptr<const Chunk> chunk;
    std::uint32_t items = 0;
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::uint32_t previous = kNoPlace; // its writer's neighbours, where an item spans both
    std::uint32_t next = kNoPlace;
    std::uint64_t number = 0; // counts up
    bool closed = false;      // no item will refer to it any more
  };

  // Items lie at places. Where the oldest is always the one that leaves they form a ring: key k at
  // k & (places - 1), those of [begin_, end_) alive. Else any place may be free, and index_ knows.
  bool is_ring() const { return remover_ == nullptr; }
  std::int64_t size() const {
    return static_cast<std::int64_t>(is_ring() ? end_ - begin_ : index_.size());
  }
  Place place_of(std::uint64_t key) const;
  std::uint64_t key_at(Place place) const;
  Place new_place(std::uint64_t key);
  std::vector<Place> places_by_key() const;
  void grow_ring();

  std::uint32_t hold(const std::shared_ptr<const Chunk>& chunk, std::uint32_t low,
                     std::uint32_t high);
  std::uint32_t cover(const std::shared_ptr<const Chunk>& chunk, std::uint32_t low,
                      std::uint32_t high);
  void cover_window(const Item& item, Slot& slot);
  void release(std::uint32_t held);
  void release_window(const Slot& slot);
  void close(std::span<const ChunkPtr> chunks);
  bool is_cold(const Held& held) const;
  void count(const Chunk& chunk, int sign);
  void exchange(std::uint32_t index, ChunkPtr chunk);
  void encode_some(std::size_t added);
  enum class Spilled { one, nothing, failed };
  Spilled spill_one();
  bool is_on_disk(const Chunk& chunk) const { // in this table's store
    return store_ && chunk.store() == store_.get();
  }
  bool spill(std::uint32_t index);
  void compact(std::uint64_t bytes);
  std::uint32_t shape_number(const ShapePtr& shape);
  std::uint32_t chunks_of(const Slot& slot) const { // that its window lies in
    return (slot.begin + slot.rows - 1) / held_[slot.chunk].chunk->capacity() + 1;
  }
  void push(const Item& item);
  void remove(Place place);
  void remove_one();
  void remove_above_limits(std::int64_t coming);
  bool take_sequence(std::uint64_t writer_id, std::uint64_t sequence);
  std::int64_t samples_left() const;
  std::int64_t reserve() const;
  bool wears() const;
  void sample_ring(std::vector<Item>& out);
  void sample_selected(std::vector<Item>& out);
  void sample_to_the_last(std::int64_t count, std::vector<Item>& out);
  void fill(Place place, Item& item) const;
  bool keeps_priorities() const;
  void give_priority(Place place, double priority);

  TableConfig config_;
  Signature signature_;
  Limiter limiter_;
  Random random_;
  std::unique_ptr<Selector> sampler_; // null: uniform over a ring
  std::unique_ptr<Selector> remover_; // null: fifo, a ring

  std::vector<Slot> slots_;          // by place, as the three below
  std::vector<std::uint32_t> times_; // sampled
  std::vector<double> priorities_;   // where they count
  std::vector<std::uint64_t> keys_;  // unless a ring
  std::vector<Place> free_places_;
  KeyIndex index_;
  std::uint64_t begin_ = 0; // of a ring: the oldest item's key
  std::uint64_t end_ = 0;   // key of the next item

  mutable std::shared_ptr<const RowLayout> checked_; // a layout that is known to fit
  std::vector<ShapePtr> shapes_{nullptr};            // of items; at most kMaxShapes, kept for ever
  std::map<ItemShape, std::uint32_t> shape_numbers_;
  std::vector<Held> held_;
  std::vector<std::uint32_t> free_held_;
  // Of held_, in the order in which they came; some are gone.
  std::deque<std::pair<std::uint32_t, const Chunk*>> raw_;     // to be encoded
  std::deque<std::pair<std::uint32_t, const Chunk*>> to_disk_; // in memory; with a store
  std::shared_ptr<SegmentStore> store_;
  std::map<BlobPosition, std::uint32_t> on_disk_; // of held_
  ChunkEncoder encoder_;
  std::uint64_t next_chunk_ = 0;
  std::int64_t encoded_chunks_ = 0;
  std::int64_t disk_bytes_ = 0;
  std::int64_t failed_spills_ = 0;
  std::int64_t failed_at_ = -1; // disk_bytes_, in the insertion that goes on
  std::string spill_error_;
  std::uint32_t newest_held_ = 0; // the chunk of the item pushed last
  std::unordered_map<const Chunk*, std::uint32_t> held_of_;
  std::unordered_map<std::uint64_t, Sequences> writers_;
  std::vector<std::shared_ptr<TableExtension>> extensions_;
  std::vector<Selected> selected_; // of one sample
  bool removal_suspended_ = false;
  double greatest_priority_ = 1;
  std::uint64_t insertions_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t used_samples_ = 0; // times that the items held were sampled
  std::int64_t sampled_ = 0;
  std::int64_t dropped_duplicates_ = 0;
  std::int64_t updated_priorities_ = 0;
  std::int64_t late_priorities_ = 0;
};

} // namespace troupe::replay
