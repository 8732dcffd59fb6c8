#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/wire/context.hpp"
#include "env/wire/keys.hpp"
#include "env/wire/shared_memory.hpp"
#include "replay/chunks/insertion.hpp"
#include "replay/chunks/spec.hpp"
#include "replay/table/table.hpp"
#include "replay/table/wait_options.hpp"

namespace troupe::replay {

struct ShardServerOptions {
  std::string endpoint = "tcp://127.0.0.1:*";
  std::int64_t max_sample = 65536; // items per request
  std::size_t max_frame_bytes = std::size_t{64} << 20;
  std::size_t max_chunk_bytes = std::size_t{64} << 20;
  /// Writers to remember; above it the least recently active one is forgotten.
  std::size_t max_writers = 1024;
  std::size_t max_waiting_samples = 1024; // of all clients together
  /// Time after a client's last message about a waiting sample, after which the sample is dropped.
  std::chrono::milliseconds sample_lease{30'000};
  /// Limit on the unread samples of one client; above it the client gets no more.
  std::size_t max_unread_bytes = std::size_t{1} << 30;
  /// For clients on this host: batches and rows are passed in memory that both processes map.
  std::optional<env::wire::SharedMemory> shared_memory = env::wire::SharedMemory{};
  /// If set, connections are encrypted and only clients with these keys are accepted. Required for
  /// interfaces other than loopback.
  std::optional<env::wire::ServerKeys> keys{};
};

/// The state of a shard, for display and for clients that do not know its table yet.
struct ShardReport {
  TableStats stats{};
  std::string why_waiting{};           // Shard::why_waiting()
  std::size_t waiting_insertions = 0;  // Shard::waiting_insertions()
  std::size_t waiting_samples = 0;     // Shard::waiting_samples()
  std::string spill_error{};           // Table::spill_error()
  std::optional<TableConfig> config{}; // if clients may see it
};

/// Functions of the shard's owner, which are called on the server's thread. They may call their
/// reply function later: once, from any thread, even after the server's end (then without effect).
struct ShardHandlers {
  /// Inserts, and calls `accepted` once the insertion is in the table. Insertions of one writer
  /// arrive in order. If `accepted` is destroyed without a call, the client sends the insertion
  /// again.
  std::function<void(InsertionPtr, std::function<void()> accepted)> insert;
  /// Returns whether the table has an insertion of this writer, or one 64 sequence numbers later.
  /// Asked about the first insertion of each writer. May be empty.
  std::function<bool(std::uint64_t writer, std::uint64_t sequence)> has_inserted;
  /// Samples, and calls `answer` with `count` items, or with none if the shard refuses. The text
  /// passed to wait.refused is sent to the client. The deadline is the client's, and
  /// wait.cancelled is set before tick() is called if the client no longer waits.
  std::function<void(std::int64_t count, std::function<void(std::vector<Item>)> answer,
                     WaitOptions wait)>
      sample;
  std::function<void(std::function<void(ShardReport)>)> report;
  /// Sets the priorities of items, which are valid numbers, and calls `done` with "" or the reason
  /// for a refusal. This and the next function may be empty; then clients are refused.
  std::function<void(std::vector<std::uint64_t> keys, std::vector<double> priorities,
                     std::function<void(const std::string& error)> done)>
      update;
  std::function<void(RateLimiterConfig limiter, std::function<void(const std::string& error)> done)>
      set_limiter;
  /// Called in every iteration of the server's thread. Returns the latest time of the next call.
  /// May be empty.
  std::function<Deadline(Deadline now)> tick;
  std::function<void(const std::string&)> log = [](const std::string&) {
  }; // receives a message for the first garbage of each kind
};

struct ShardServerCounters {
  std::int64_t garbage = 0;    // dropped messages
  std::int64_t insertions = 0; // insertions passed to the owner
  std::int64_t duplicates = 0; // insertions dropped as duplicates
  std::int64_t samples = 0;    // sent batches
  std::int64_t strangers = 0;  // connections rejected because of their keys
  std::int64_t shared = 0;     // frames passed through shared memory, in both directions
};

/// One of the tables behind a port.
struct ServedTable {
  std::string name = {}; // 1 to 256 bytes; "" if it is the only one
  Signature signature = {};
  ShardHandlers handlers = {}; // the `log` of the first table is used for all
  /// If set, only items of this spec are accepted, for an owner that gathers them.
  std::optional<TransitionSpec> transitions = {};
};

/// The data port of shards: a ROUTER socket and a thread that decodes and checks messages, rebuilds
/// chunks and gathers sampled batches into messages. The constructor throws std::invalid_argument
/// if table names are invalid or not unique, and std::runtime_error if the endpoint cannot be
/// bound. The destructor stops the thread.
///
/// Tables of the same signature share the chunks of a writer: rows that belong to insertions into
/// several tables are sent and stored once, until the items of all these tables are removed.
class ShardServer {
public:
  ShardServer(env::wire::Context& context, std::vector<ServedTable> tables,
              const ShardServerOptions& options = {});
  ~ShardServer();
  ShardServer(const ShardServer&) = delete;
  ShardServer& operator=(const ShardServer&) = delete;

  const std::string& endpoint() const;  // with the actual port, "tcp://127.0.0.1:40123"
  ShardServerCounters counters() const; // any thread

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::replay
