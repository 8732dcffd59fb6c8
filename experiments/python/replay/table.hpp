#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "experiments/python/fork_guard.hpp"
#include "experiments/python/recycled_blocks.hpp"
#include "experiments/python/replay/insertion_sink.hpp"
#include "experiments/python/replay/part.hpp"
#include "replay/service/hosted_shard.hpp"
#include "replay/service/shard_client.hpp"

namespace troupe::python {

/// A table of this process, for any number of threads. The interpreter's lock is released while
/// items are copied and while the limiter blocks a call. A process that was forked after the table
/// was made is refused.
class ReplayTable final : public InsertionSink {
public:
  /// Takes columns as "name:type:3,84,84" and assignments as "key=value" with the keys of `troupe
  /// list table-keys`. Throws std::invalid_argument with all complaints, one per line.
  ReplayTable(const std::vector<std::string>& columns, const std::vector<std::string>& assignments);

  const std::shared_ptr<const replay::Signature>& signature() const override { return signature_; }

  void check_table(const std::string& table) override;
  bool insert(const replay::InsertionPtr& insertion, const std::string& table,
              double deadline) override;

  /// Raises Python's TimeoutError with the reason if the limiter does not admit the sample before
  /// the deadline. Throws std::invalid_argument on a count that is never possible.
  ReplayPart sample(std::int64_t count, double deadline);

  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities);
  void set_limiter(const replay::RateLimiterConfig& limiter);
  std::int64_t items();
  replay::ShardInfo info();

  /// Writes a checkpoint to a folder. An earlier checkpoint there is replaced, or kept on failure.
  /// Throws StorageError.
  void save(const std::string& folder);
  /// Replaces the contents. Returns how the configuration differs, "" if it does not. Throws as
  /// replay::Table::load() does.
  std::string load(const std::string& folder, bool accept_other_configuration);
  void clear();

private:
  struct Request;
  std::string wait_for(Request& request, replay::Deadline end);
  void finish(Request& request, std::string refusal);
  std::shared_ptr<std::byte> take_block(std::size_t bytes);
  static std::size_t count_rows(std::span<const replay::Item> items, std::size_t place,
                                bool whole_and_equal, ReplayPart::Column& column);
  ReplayPart part_of(std::span<const replay::Item> items);

  replay::HostedTable configured_;
  std::shared_ptr<const replay::Signature> signature_;
  std::shared_ptr<const replay::RowLayout> layout_;
  std::shared_ptr<replay::SegmentStore> store_; // holds chunks on disk, if any
  ForkGuard guard_;
  replay::HostedShard shard_;
  std::mutex saving_;
  std::mutex mutex_; // guards the members below
  std::condition_variable answered_;
  std::map<std::size_t, RecycledBlocks> blocks_; // by size in bytes
};

} // namespace troupe::python
