#pragma once

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
  std::size_t max_writers = 1024; // remembered; above it the least recently active is forgotten
  std::size_t max_waiting_samples = 1024; // over all clients
  /// Of unread samples for one client; above it the client gets no others.
  std::size_t max_unread_bytes = std::size_t{1} << 30;
  /// With clients on this host: batches and rows go through memory that both processes map.
  std::optional<env::wire::SharedMemory> shared_memory = env::wire::SharedMemory{};
  /// Accepts only clients with these keys, encrypted; required off the loopback interface.
  std::optional<env::wire::ServerKeys> keys{};
  /// Accepts only such items, for an owner of the only table that gathers them.
  std::optional<TransitionSpec> transitions{};
};

/// The state of a shard, for people and for clients that do not know its table yet.
struct ShardReport {
  TableStats stats{};
  std::string why_waiting{};           // Shard::why_waiting()
  std::string spill_error{};           // Table::spill_error()
  std::optional<TableConfig> config{}; // if clients may know it
};

/// Functions of the shard's owner, called on the server's thread. Each reply function may be called
/// later, once, from any thread, even after the server's end (then without effect).
struct ShardHandlers {
  /// Calls `accepted` once the insertion is in the table; insertions of one writer in order. If
  /// destroyed without a call, the client sends the insertion again.
  std::function<void(InsertionPtr, std::function<void()> accepted)> insert;
  /// Calls `answer` with `count` items, or with none if the shard refuses; the client gets the text
  /// given to wait.refused. The deadline is the client's.
  std::function<void(std::int64_t count, std::function<void(std::vector<Item>)> answer,
                     WaitOptions wait)>
      sample;
  std::function<void(std::function<void(ShardReport)>)> report;
  /// Valid priorities for items by key; calls `done` with "" or the reason of a refusal. May be
  /// missing, like the next one; then clients are refused.
  std::function<void(std::vector<std::uint64_t> keys, std::vector<double> priorities,
                     std::function<void(const std::string& error)> done)>
      update;
  std::function<void(RateLimiterConfig limiter, std::function<void(const std::string& error)> done)>
      set_limiter;
  /// Called in every turn of the server's thread; returns the latest time of the next call. May be
  /// missing.
  std::function<Deadline(Deadline now)> tick;
  std::function<void(const std::string&)> log = [](const std::string&) {
  }; // first garbage of a kind
};

struct ShardServerCounters {
  std::int64_t garbage = 0;    // messages dropped
  std::int64_t insertions = 0; // passed to the owner
  std::int64_t duplicates = 0; // dropped before
  std::int64_t samples = 0;    // batches sent
  std::int64_t strangers = 0;  // connections refused because of their keys
  std::int64_t shared = 0;     // frames that went through shared memory, either way
};

/// One of the tables behind a port.
struct ServedTable {
  std::string name; // 1 to 256 bytes; "" if it is the only one
  Signature signature;
  ShardHandlers handlers;                      // `log` of the first serves all
  std::optional<TransitionSpec> transitions{}; // as in ShardServerOptions
};

/// The data port of shards: a ROUTER socket and the thread that decodes, checks, rebuilds chunks
/// and gathers sampled batches into messages. The constructor throws std::invalid_argument on
/// duplicate names of tables, std::runtime_error if the endpoint cannot be bound. The destructor
/// ends the thread.
///
/// Tables of the same signature share the chunks of a writer: rows that two insertions (one to each
/// table) name are sent and stored once, until all items of both are removed.
class ShardServer {
public:
  ShardServer(env::wire::Context& context, const Signature& signature, ShardHandlers handlers,
              const ShardServerOptions& options = {});
  ShardServer(env::wire::Context& context, std::vector<ServedTable> tables,
              const ShardServerOptions& options = {});
  ~ShardServer();
  ShardServer(const ShardServer&) = delete;
  ShardServer& operator=(const ShardServer&) = delete;

  const std::string& endpoint() const;  // with the port, "tcp://127.0.0.1:40123"
  ShardServerCounters counters() const; // any thread

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::replay
