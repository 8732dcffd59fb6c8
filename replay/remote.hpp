#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "env/wire/context.hpp"
#include "env/wire/keys.hpp"
#include "env/wire/shared_memory.hpp"
#include "replay/batch.hpp"
#include "replay/column_batch.hpp"
#include "replay/insertion.hpp"
#include "replay/patience.hpp"
#include "replay/spec.hpp"
#include "replay/table.hpp"

namespace troupe::replay {

using Deadline = std::chrono::steady_clock::time_point;

struct ShardServerOptions {
  std::string endpoint = "tcp://127.0.0.1:*";
  std::int64_t max_sample = 65536; // items per request
  std::size_t max_frame_bytes = std::size_t{64} << 20;
  std::size_t max_chunk_bytes = std::size_t{64} << 20;
  std::size_t max_writers = 1024;         // remembered; the one silent for longest is forgotten
  std::size_t max_waiting_samples = 1024; // over all clients
  /// Of samples on their way to one client; while it does not read them it gets no others.
  std::size_t max_unread_bytes = std::size_t{1} << 30;
  /// With clients on this host: batches and rows go through memory that both processes map.
  std::optional<env::wire::SharedMemory> shared_memory = env::wire::SharedMemory{};
  /// Only clients with these keys, encrypted; needed to bind something else than loopback.
  std::optional<env::wire::ServerKeys> keys{};
  /// Only such items are let in: for owners of the one table who gather() them.
  std::optional<TransitionSpec> transitions{};
};

/// What the owner of a shard tells of it, for people and for clients that have yet to learn.
struct ShardReport {
  TableStats stats{};
  std::string why_waiting{};           // Shard::why_waiting()
  std::optional<TableConfig> config{}; // where clients may know it
};

/// What the owner of the shard does; called on the server's thread. Each reply function may be
/// called later, once, from any thread, also after the server is gone (then it does nothing).
struct ShardHandlers {
  /// `accepted` when the insertion is in. Insertions of one writer are accepted in order. Destroyed
  /// uncalled: the client sends the insertion again.
  std::function<void(InsertionPtr, std::function<void()> accepted)> insert;
  /// `answer` with `count` items, or with none: the client is told that the shard refused, with the
  /// words given to patience.refused. The deadline is the client's.
  std::function<void(std::int64_t count, std::function<void(std::vector<Item>)> answer,
                     Patience patience)>
      sample;
  std::function<void(std::function<void(ShardReport)>)> report;
  /// Valid priorities for items by key; `done` with "" or why they are refused. May be missing, as
  /// the next one: the client is told so.
  std::function<void(std::vector<std::uint64_t> keys, std::vector<double> priorities,
                     std::function<void(const std::string& error)> done)>
      update;
  std::function<void(LimiterConfig limiter, std::function<void(const std::string& error)> done)>
      set_limiter;
  /// Called in every turn of the server's thread; gives when to call it again at the latest. May be
  /// missing.
  std::function<Deadline(Deadline now)> tick;
  std::function<void(const std::string&)> log = [](const std::string&) {
  }; // first garbage of a kind
};

struct ShardServerCounters {
  std::int64_t garbage = 0;    // messages dropped
  std::int64_t insertions = 0; // handed on
  std::int64_t duplicates = 0; // dropped before they were handed on
  std::int64_t samples = 0;    // batches sent
  std::int64_t strangers = 0;  // connections refused for their keys
  std::int64_t shared = 0;     // frames that went through shared memory, either way
};

/// One of the tables behind a port.
struct ServedTable {
  std::string name; // 1 to 256 bytes; "" where it is the only one
  Signature signature;
  ShardHandlers handlers;                      // `log` of the first serves all
  std::optional<TransitionSpec> transitions{}; // as in ShardServerOptions
};

/// The data port of shards: a ROUTER socket and the thread that decodes, checks, rebuilds chunks
/// and gathers sampled batches into messages. The constructor throws std::invalid_argument on names
/// of tables that are not unique, std::runtime_error when the endpoint cannot be bound. The
/// destructor ends the thread.
///
/// Tables of the same signature share the chunks of a writer: rows that two insertions (one to each
/// table) name are sent once and held once, until all items of either are gone.
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

/// The server gave no sign of life.
struct ShardSilence : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ShardClientOptions {
  /// Insertions sent and not yet accepted; of a writer these lie within 64 of its sequence.
  std::size_t window = 64;
  std::chrono::milliseconds ping_interval{200}; // while waiting; finds out what a server has lost
  std::chrono::milliseconds silence{30'000};    // over several calls, until the server is gone
  std::optional<env::wire::SharedMemory> shared_memory = env::wire::SharedMemory{};
  std::optional<env::wire::ClientKeys> keys{};         // of a server with keys
  std::string table{};                                 // of those behind the port; "": the only one
  std::size_t part_bytes = std::size_t{8} << 20;       // of the messages of a ColumnBatch
  std::size_t max_frame_bytes = std::size_t{64} << 20; // as the server's: of a column of one item
};

/// What a server tells of a table.
struct ShardInfo {
  std::uint32_t protocol = 0;
  std::vector<std::string> tables{};   // behind its port
  Signature signature{};               // no columns: there are several tables and none was named
  std::optional<TableConfig> config{}; // where its owner tells
  TableStats stats{};
  std::string why_waiting{}; // who waits for what; "": nobody
};

/// A client of one shard; one thread. Every waiting call ends at its deadline. Where the limiter
/// (or the window) holds this side back the result says so; where the server gave no sign of life
/// during the whole call (of at least two ping intervals), or as soon as it is silent for `silence`
/// over several calls, it throws ShardSilence, which names the endpoint. Pings that nobody
/// answers become rarer, up to ten intervals apart. A restarted server at the same endpoint is
/// found again and gets what has not been accepted.
class ShardClient {
public:
  /// Of transitions: samples may go into a BatchView.
  ShardClient(env::wire::Context& context, const std::string& endpoint, const TransitionSpec& spec,
              const ShardClientOptions& options = {});
  ShardClient(env::wire::Context& context, const std::string& endpoint, const Signature& signature,
              const ShardClientOptions& options = {});
  /// Learns the signature from the server. Throws as info(), and std::invalid_argument where the
  /// port has several tables and options.table names none of them.
  static ShardClient connect(env::wire::Context& context, const std::string& endpoint,
                             Deadline deadline, const ShardClientOptions& options = {});
  /// What a port tells to anybody. Throws as info().
  static ShardInfo ask(env::wire::Context& context, const std::string& endpoint, Deadline deadline,
                       const ShardClientOptions& options = {});
  ~ShardClient(); // what is in flight is lost: flush() first
  ShardClient(ShardClient&& other) noexcept;
  ShardClient& operator=(ShardClient&& other) noexcept;

  const Signature& signature() const;

  /// Sends and returns; waits only while the window is full. Throws std::invalid_argument on items
  /// and chunks above max_frame_bytes. False: still full at the deadline
  /// (nothing was sent; the caller keeps the insertion). Insertions of a writer go in order.
  /// `table`: another one of the same signature behind the port ("": this client's); rows that were
  /// sent to one are known to the other, so its insertion need not name them (split() in
  /// insertion_split.hpp makes such).
  bool insert(InsertionPtr insertion, Deadline deadline, const std::string& table = {});
  /// The same with a deadline 10 s from now; throws std::runtime_error where that returns false.
  void insert(InsertionPtr insertion);

  std::size_t in_flight() const;

  /// Takes in what the server has answered meanwhile; does not wait.
  void poll();

  /// True when the server has accepted everything, false at the deadline.
  bool flush(Deadline deadline);

  /// Of transitions: writes `count` sampled items to rows [first_row, first_row + count) of `batch`
  /// and returns `count`; nullopt when the limiter did not let it through before the deadline (the
  /// request stands: the next sample() of the same count takes its answer). Throws
  /// std::runtime_error when the shard refuses: it stops, too many wait, or it lets nobody wait
  /// longer than `patience` (0: for ever), and its words say who waits for what.
  std::optional<std::int64_t> sample(std::int64_t count, const BatchView& batch,
                                     std::int64_t first_row, Deadline deadline,
                                     std::chrono::milliseconds patience = {});

  /// The same with items of any windows, which stay in the memory they arrived in; nothing is lost
  /// at the deadline.
  std::optional<ColumnBatch> sample(std::int64_t count, Deadline deadline,
                                    std::chrono::milliseconds patience = {});

  /// Gives items new priorities; those that are gone are passed over. In order with the samples
  /// that this client asks for. Throws std::invalid_argument on spans of different lengths, and
  /// std::runtime_error when the shard refuses or does not answer before the deadline.
  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities,
                         Deadline deadline);

  /// Another limiter for the running shard. Throws as update_priorities().
  void set_limiter(const LimiterConfig& limiter, Deadline deadline);

  TableStats stats(Deadline deadline);

  /// What the port has, and what this client's table is. Throws as update_priorities().
  ShardInfo info(Deadline deadline);

  // The same without waiting, for who has several shards:

  /// Asks for what the next sample() of this count, of `columns` or not, takes.
  void request_sample(std::int64_t count, bool columns, std::chrono::milliseconds patience = {});
  /// One question at a time: another one takes its place.
  void ask_stats();
  void ask_update(std::span<const std::uint64_t> keys, std::span<const double> priorities);
  /// True once, when the question is answered. Throws std::runtime_error where it is refused.
  bool answered();
  const TableStats& last_stats() const; // that a question got
  /// How long the oldest ping without an answer is ago; 0 where none is.
  std::chrono::milliseconds silent() const;
  /// Returns when something comes from the server, or at the deadline.
  void wait(Deadline deadline);

private:
  struct Impl;
  explicit ShardClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::replay
