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

/// Thrown if the server does not answer.
struct ShardSilence : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ShardClientOptions {
  /// Maximum number of insertions that are sent and not yet accepted; of one writer, they must also
  /// be among 64 consecutive sequence numbers.
  std::size_t window = 64;
  /// Interval of pings while a call waits; they detect what a server has lost.
  std::chrono::milliseconds ping_interval{200};
  /// Time of silence, over several calls, after which the server counts as lost.
  std::chrono::milliseconds silence{30'000};
  std::optional<env::wire::SharedMemory> shared_memory = env::wire::SharedMemory{};
  std::optional<env::wire::ClientKeys> keys{};   // needed if the server has keys
  std::string table{};                           // one of the port's tables; "": the only one
  std::size_t part_bytes = std::size_t{8} << 20; // size of the messages of a ColumnBatch
  /// Should equal the server's; limits the bytes of one column of an item.
  std::size_t max_frame_bytes = std::size_t{64} << 20;
};

/// A server's description of a table and of its port.
struct ShardInfo {
  std::uint32_t protocol = 0;
  std::vector<std::string> tables{};   // all tables behind the port
  Signature signature{};               // no columns if there are several tables and none was named
  std::optional<TableConfig> config{}; // if the owner of the table provides it
  TableStats stats{};
  std::string why_waiting{}; // which requests wait, and for what; "": none
};

/// A client of one shard, used by one thread at a time. Every waiting call ends at its deadline. If
/// the rate limiter (or the window) makes the call wait for too long, the return value says so. If
/// the server was silent during the whole call (of at least two ping intervals), or for `silence`
/// over several calls, the call throws ShardSilence, which names the endpoint. While pings stay
/// unanswered, they become rarer, up to ten intervals apart. The client reconnects to a restarted
/// server at the same endpoint and sends the unaccepted insertions again.
class ShardClient {
public:
  /// A client of transitions, which can sample into a BatchView.
  ShardClient(env::wire::Context& context, const std::string& endpoint, const TransitionSpec& spec,
              const ShardClientOptions& options = {});
  ShardClient(env::wire::Context& context, const std::string& endpoint, const Signature& signature,
              const ShardClientOptions& options = {});
  /// Makes a client with the signature that the server reports. Throws as info() does, and
  /// std::invalid_argument if the port has several tables and options.table names none of them.
  static ShardClient connect(env::wire::Context& context, const std::string& endpoint,
                             Deadline deadline, const ShardClientOptions& options = {});
  /// Returns the description of a port without making a client. Throws as info() does.
  static ShardInfo ask(env::wire::Context& context, const std::string& endpoint, Deadline deadline,
                       const ShardClientOptions& options = {});
  ~ShardClient(); // insertions in flight are lost, so call flush() first
  ShardClient(ShardClient&& other) noexcept;
  ShardClient& operator=(ShardClient&& other) noexcept;

  const Signature& signature() const;

  /// Sends an insertion; waits only while the window is full. Returns false if it is still full at
  /// the deadline: nothing was sent, and the caller keeps the insertion. Throws
  /// std::invalid_argument on items and chunks above max_frame_bytes. The insertions of a writer
  /// must be sent in order. `table` may name another table of the same signature behind the port
  /// ("": this client's). Rows sent to one of these tables are known to the others, so insertions
  /// to them need not contain the rows (see split() in insertion_split.hpp).
  bool insert(InsertionPtr insertion, Deadline deadline, const std::string& table = {});

  std::size_t in_flight() const;

  /// Continues with a shard at another endpoint and sends it all insertions in flight.
  void move(const std::string& endpoint);

  /// Handles the answers that have arrived; does not wait.
  void poll();

  /// Waits until the server has accepted all insertions. Returns false at the deadline.
  bool flush(Deadline deadline);

  /// For clients of transitions: writes `count` sampled items to rows [first_row, first_row +
  /// count) of `batch` and returns `count`. Returns nullopt if the rate limiter did not allow it
  /// before the deadline; the request remains open, and the next sample() of the same count takes
  /// its answer, with the rows that have arrived meanwhile. One of another count, cancel_sample()
  /// and the destructor withdraw it. Throws std::runtime_error with the shard's reason if it
  /// refuses: it is stopping, too many requests wait, or this one has waited for `patience` (0: no
  /// limit).
  std::optional<std::int64_t> sample(std::int64_t count, const BatchView& batch,
                                     std::int64_t first_row, Deadline deadline,
                                     std::chrono::milliseconds patience = {});

  /// Samples items with any windows, which stay in the memory of their messages. Otherwise like the
  /// other sample(). At the deadline, parts that have arrived are kept for the next call.
  std::optional<ColumnBatch> sample(std::int64_t count, Deadline deadline,
                                    std::chrono::milliseconds patience = {});

  /// Sets the priorities of items and ignores removed items. Takes effect in order with this
  /// client's samples. Throws std::invalid_argument if the spans have different lengths, and
  /// std::runtime_error if the shard refuses or does not answer before the deadline.
  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities,
                         Deadline deadline);

  /// Replaces the rate limiter of the running shard. Throws as update_priorities() does.
  void set_limiter(const RateLimiterConfig& limiter, Deadline deadline);

  TableStats stats(Deadline deadline);

  /// Returns the port's tables and a description of this client's. Throws as update_priorities()
  /// does.
  ShardInfo info(Deadline deadline);

  // Variants that do not wait, for clients of several shards:

  /// Requests a sample, which the next sample() into a BatchView of this count takes.
  void request_sample(std::int64_t count, std::chrono::milliseconds patience = {});
  /// Withdraws the open request, so that the shard keeps its items. A sample that was sent already
  /// is lost.
  void cancel_sample();
  /// Sends a question. Only one can be open at a time: a new one replaces it.
  void ask_stats();
  void ask_update(std::span<const std::uint64_t> keys, std::span<const double> priorities);
  /// Returns true once, after the question was answered. Throws std::runtime_error if it was
  /// refused.
  bool answered();
  const TableStats& last_stats() const; // from the last answer
  /// Returns the time since the oldest unanswered ping; 0 if there is none.
  std::chrono::milliseconds silent() const;
  /// Waits until a message from the server arrives, or until the deadline.
  void wait(Deadline deadline);

private:
  struct Impl;
  explicit ShardClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::replay
