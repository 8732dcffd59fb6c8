#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/insertion.hpp"
#include "replay/spec.hpp"

namespace troupe::replay {

/// Configuration of one shard's table. The limiter is Reverb's SampleToInsertRatio: with
///   drift = samples_per_insert * (inserted - min_items) - sampled
/// an insertion of one more item may not bring drift above error_buffer and a sample of n not below
/// -error_buffer, once min_items have been inserted; before that inserts are free and samples wait.
/// Where 2 * error_buffer < n + samples_per_insert (neither side might ever move) samples of n may
/// go down to error_buffer - n - samples_per_insert. An insertion is let in whole when its first
/// item is.
struct TableConfig {
  std::int64_t max_items = 1'000'000;
  std::int64_t max_bytes = std::int64_t{4} << 30; // of chunks
  std::int64_t min_items = 1;
  double samples_per_insert = 1;
  double error_buffer = 1024; // samples
  bool deterministic = false; // the limiter enforces min_items only

  bool operator==(const TableConfig&) const = default;
};

struct TableStats {
  std::int64_t items = 0;
  std::int64_t bytes = 0; // memory of the chunks held; a frame shared by items counts once
  std::int64_t inserted = 0;
  std::int64_t sampled = 0;
  std::int64_t dropped_duplicates = 0; // insertions

  bool operator==(const TableStats&) const = default;
};

/// The items of one shard: uniform sampling with replacement, FIFO removal by items and by bytes
/// (bytes may exceed max_bytes by one chunk: the newest items stay). Data and decisions: no thread,
/// clock or socket; one thread at a time. Hot paths neither lock nor throw.
class Table {
public:
  /// Throws std::invalid_argument naming the key (replay.max_items …), the value and the rule.
  Table(const TableConfig& config, const TransitionSpec& spec, std::uint64_t seed);

  /// Adds all items and removes the oldest above the limits, whatever can_insert() says. An
  /// insertion whose sequence this writer has used before is dropped and counted; so is one that
  /// is 64 or more below the writer's newest.
  void insert(const Insertion& insertion);

  bool can_insert() const;
  bool can_sample(std::int64_t count) const;
  bool has_min_items() const; // inserted so far, and not empty

  /// Which side waits for what, in words with numbers; "" when both may move.
  std::string why_blocked(std::int64_t sample_count = 1) const;

  /// `count` items, independent and uniform, into `out` (replaced). Nothing when empty. Does not
  /// ask the limiter, but counts.
  void sample(std::int64_t count, std::vector<Item>& out);

  TableStats stats() const;
  const TableConfig& config() const { return config_; }
  const TransitionSpec& spec() const { return spec_; }

  /// Writes everything (items, rows, counters, random state) to a temporary file beside `path` and
  /// renames it. Throws std::runtime_error naming the file and the cause; `path` is unharmed then.
  void save(const std::string& path) const;

  enum class ConfigChange { refuse, accept };

  /// Replaces the contents; sampling then goes on exactly as it would have after save(). Throws
  /// std::runtime_error (the table is unchanged) on a file that is missing, truncated, damaged or
  /// foreign, whose TransitionSpec differs, or whose TableConfig differs (the message lists each
  /// difference). With ConfigChange::accept another TableConfig is fine: this table's applies, the
  /// limiter begins anew at drift 0, and the oldest items above the limits are removed.
  void load(const std::string& path, ConfigChange change = ConfigChange::refuse);

private:
  friend struct TableFile;
  struct Slot { // an item of the ring
    std::uint32_t chunk = 0;
    std::uint32_t next_chunk = 0; // kNone: the window ends in the first
    std::uint32_t begin = 0;
    std::uint16_t history = 0;
    std::uint16_t steps = 0;
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
  };

  std::uint32_t hold(const std::shared_ptr<const Chunk>& chunk, std::uint32_t low,
                     std::uint32_t high);
  void release(std::uint32_t held);
  void remove_oldest();
  void push(const Item& item);
  void grow();
  bool take_sequence(std::uint64_t writer_id, std::uint64_t sequence);
  double drift() const;
  double least_drift(std::int64_t count) const;
  std::uint64_t random_below(std::uint64_t bound);

  TableConfig config_;
  TransitionSpec spec_;
  std::array<std::uint64_t, 4> random_;
  std::vector<Slot> ring_;  // a power of two; item key k lies at k & (size - 1)
  std::uint64_t begin_ = 0; // key of the oldest item
  std::uint64_t end_ = 0;   // key of the next item
  std::vector<Held> held_;
  std::vector<std::uint32_t> free_held_;
  std::uint32_t newest_held_ = 0; // the chunk of the item pushed last
  std::unordered_map<const Chunk*, std::uint32_t> held_of_;
  std::unordered_map<std::uint64_t, Sequences> writers_;
  std::uint64_t insertions_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t sampled_ = 0;
  std::int64_t dropped_duplicates_ = 0;
  std::int64_t limiter_inserted_ = 0;
  std::int64_t limiter_sampled_ = 0;
};

} // namespace troupe::replay
