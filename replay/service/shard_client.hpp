#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "env/wire/context.hpp"
#include "env/wire/keys.hpp"
#include "env/wire/shared_memory.hpp"
#include "replay/batch/batch.hpp"
#include "replay/batch/column_batch.hpp"
#include "replay/chunks/insertion.hpp"
#include "replay/chunks/spec.hpp"
#include "replay/table/table.hpp"
#include "replay/table/wait_options.hpp"

namespace troupe::replay {

/// The server is silent.
struct ShardSilence : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ShardClientOptions {
  /// Insertions sent and not yet accepted; of a writer within 64 of its sequence.
  std::size_t window = 64;
  std::chrono::milliseconds ping_interval{200}; // while waiting; detects what a server has lost
  std::chrono::milliseconds silence{30'000}; // over several calls, until the server counts as lost
  std::optional<env::wire::SharedMemory> shared_memory = env::wire::SharedMemory{};
  std::optional<env::wire::ClientKeys> keys{};         // of a server with keys
  std::string table{};                                 // of the port's tables; "": the only one
  std::size_t part_bytes = std::size_t{8} << 20;       // of the messages of a ColumnBatch
  std::size_t max_frame_bytes = std::size_t{64} << 20; // as the server's: of a column of one item
};

/// A server's description of a table.
struct ShardInfo {
  std::uint32_t protocol = 0;
  std::vector<std::string> tables{};   // behind its port
  Signature signature{};               // no columns: there are several tables and none was named
  std::optional<TableConfig> config{}; // if its owner provides it
  TableStats stats{};
  std::string why_waiting{}; // which requests wait for what; "": none
};

/// A client of one shard; one thread. Every waiting call ends at its deadline. If the rate limiter
/// (or the window) holds this side back, the result says so. If the server was silent during the
/// whole call (of at least two ping intervals), or for `silence` over several calls, it throws
/// ShardSilence, which names the endpoint. Unanswered pings become rarer, up to ten intervals
/// apart. It reconnects to a restarted server at the same endpoint and sends the unaccepted
/// insertions again.
class ShardClient {
public:
  /// Of transitions: samples may go into a BatchView.
  ShardClient(env::wire::Context& context, const std::string& endpoint, const TransitionSpec& spec,
              const ShardClientOptions& options = {});
  ShardClient(env::wire::Context& context, const std::string& endpoint, const Signature& signature,
              const ShardClientOptions& options = {});
  /// Gets the signature from the server. Throws as info(), and std::invalid_argument if the port
  /// has several tables and options.table names none of them.
  static ShardClient connect(env::wire::Context& context, const std::string& endpoint,
                             Deadline deadline, const ShardClientOptions& options = {});
  /// A port's description for any client. Throws as info().
  static ShardInfo ask(env::wire::Context& context, const std::string& endpoint, Deadline deadline,
                       const ShardClientOptions& options = {});
  ~ShardClient(); // loses insertions in flight: flush() first
  ShardClient(ShardClient&& other) noexcept;
  ShardClient& operator=(ShardClient&& other) noexcept;

  const Signature& signature() const;

  /// Sends and returns; waits only while the window is full. Throws std::invalid_argument on items
  /// and chunks above max_frame_bytes. False: still full at the deadline (nothing was sent; the
  /// caller keeps the insertion). Insertions of a writer go in order. `table`: another one of the
  /// same signature behind the port ("": this client's); rows sent to one are known to the other,
  /// so its insertion need not name them (see split() in insertion_split.hpp).
  bool insert(InsertionPtr insertion, Deadline deadline, const std::string& table = {});

  std::size_t in_flight() const;

  /// Continues with the shard at another endpoint, which gets all insertions in flight.
  void move(const std::string& endpoint);

  /// Handles the server's answers so far; does not wait.
  void poll();

  /// True once the server has accepted everything; false at the deadline.
  bool flush(Deadline deadline);

  /// Of transitions: writes `count` sampled items to rows [first_row, first_row + count) of `batch`
  /// and returns `count`; nullopt if the rate limiter did not allow it before the deadline (the
  /// request stands: the next sample() of the same count takes its answer). Throws
  /// std::runtime_error with the shard's reason if it refuses: it stops, too many requests wait, or
  /// this one has waited for `patience` (0: no limit).
  std::optional<std::int64_t> sample(std::int64_t count, const BatchView& batch,
                                     std::int64_t first_row, Deadline deadline,
                                     std::chrono::milliseconds patience = {});

  /// The same with items of any windows, which stay in the memory of their messages; nothing is
  /// lost at the deadline.
  std::optional<ColumnBatch> sample(std::int64_t count, Deadline deadline,
                                    std::chrono::milliseconds patience = {});

  /// Gives items new priorities; ignores removed items. In order with this client's samples. Throws
  /// std::invalid_argument on spans of different lengths, and std::runtime_error if the shard
  /// refuses or does not answer before the deadline.
  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities,
                         Deadline deadline);

  /// Replaces the rate limiter of the running shard. Throws as update_priorities().
  void set_limiter(const RateLimiterConfig& limiter, Deadline deadline);

  TableStats stats(Deadline deadline);

  /// The port's tables, and a description of this client's. Throws as update_priorities().
  ShardInfo info(Deadline deadline);

  // The same without waiting, for clients of several shards:

  /// Requests the sample that the next sample() of this count, of `columns` or not, takes.
  void request_sample(std::int64_t count, bool columns, std::chrono::milliseconds patience = {});
  /// One question at a time: another one replaces it.
  void ask_stats();
  void ask_update(std::span<const std::uint64_t> keys, std::span<const double> priorities);
  /// True once, when the question is answered. Throws std::runtime_error if it is refused.
  bool answered();
  const TableStats& last_stats() const; // of the last answer
  /// The time since the oldest unanswered ping; 0: none.
  std::chrono::milliseconds silent() const;
  /// Returns when a message arrives from the server, or at the deadline.
  void wait(Deadline deadline);

private:
  struct Impl;
  explicit ShardClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::replay
