#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/service/shard_client.hpp"
#include "replay/table/random.hpp"

namespace troupe::replay {

/// The name of a shard, not its endpoint, determines which trajectories it gets.
struct ShardAddress {
  std::string name;
  std::string endpoint;
};

struct ShardedClientOptions {
  /// For each shard. A shard that is silent for `silence` is left out.
  ShardClientOptions client{.silence = std::chrono::milliseconds(3000)};
  std::uint64_t seed = 1; // for the division of batches
  /// If a shard's window stays full for this time because its rate limiter waits for samples, the
  /// trajectory moves to the next shard. Otherwise writers and samplers could wait for each other.
  std::chrono::milliseconds patience{100};
  std::int64_t statistics_every = 16; // batches after which sizes and weights are requested again
  std::function<void(const std::string&)> log = [](const std::string&) {
  }; // receives messages about shards that leave and return
};

struct ShardState {
  ShardAddress address;
  bool lives = true;
  std::size_t in_flight = 0; // insertions that were sent and not yet accepted
  TableStats stats;          // from the last answer
};

struct ShardedCounters {
  std::int64_t left = 0;            // number of times that a shard was left out
  std::int64_t rejoined = 0;        // number of times that a shard came back
  std::int64_t spilled = 0;         // trajectories that moved to another shard
  std::int64_t lost_insertions = 0; // in flight to a shard when it was removed
  std::int64_t lost_priorities = 0; // for rows whose shard was lost or restarted since
};

/// A client of several shards, which act as one table; used by one thread at a time. Rendezvous
/// hashing of the shards' names assigns each trajectory to a shard (a trajectory is an episode, or
/// all rows of a writer if episodes are not marked). A batch consists of parts from all shards in
/// proportion to TableStats::sampling_weight. A silent shard is left out: its trajectories move to
/// other shards, and its unaccepted insertions stay in its window and are sent when it is back,
/// before new ones. Waiting calls end at their deadline; if no shard is alive then, they throw
/// ShardSilence, which names all shards. Exceptions of a ShardClient on refusals pass through.
///
/// The key of a row consists of the number of its shard and, in the low 48 bits, the key in that
/// shard. It is valid until the shard is left out.
class ShardedClient {
public:
  /// Throws std::invalid_argument as add() and ShardClient do. `context` must outlive this object.
  ShardedClient(env::wire::Context& context, const TransitionSpec& spec,
                const std::vector<ShardAddress>& shards, const ShardedClientOptions& options = {});
  ~ShardedClient(); // insertions in flight are lost, so call flush() first
  ShardedClient(const ShardedClient&) = delete;
  ShardedClient& operator=(const ShardedClient&) = delete;

  /// Adds a shard, which gets its part of new trajectories from now on. Throws
  /// std::invalid_argument on an empty or duplicate name or endpoint.
  void add(const ShardAddress& shard);
  /// Removes a shard. Its insertions in flight are lost and counted. Throws std::invalid_argument
  /// on an unknown name.
  void remove(const std::string& name);

  /// Sends an insertion to the shard of its trajectory. Returns false if the windows of all living
  /// shards are still full at the deadline; then the caller keeps the insertion.
  bool insert(InsertionPtr insertion, Deadline deadline);
  /// Waits until all shards, including those left out, have accepted all insertions. Returns false
  /// at the deadline.
  bool flush(Deadline deadline);
  /// Handles the answers that have arrived, and detects shards that are lost or back. Does not
  /// wait.
  void poll();

  /// Writes `count` rows as ShardClient::sample() does. The rows of each shard are contiguous, in
  /// the order in which the shards were added; the division depends only on the seed and the
  /// statistics. `probability` is the probability of choosing the item among the items of all
  /// shards, and `table_items` is the number of these items, so importance_weights() takes the
  /// batch as one part and is unbiased. Returns nullopt if the batch is not complete at the
  /// deadline; a call with the same count, batch and row continues it, and any other call starts a
  /// new one. If a shard is lost meanwhile, it is left out and the batch starts again.
  std::optional<std::int64_t> sample(std::int64_t count, const BatchView& batch,
                                     std::int64_t first_row, Deadline deadline,
                                     std::chrono::milliseconds patience = {});

  /// Sends the priorities to the shards from which the rows came. Priorities of rows whose shard
  /// was lost are ignored and counted. Throws as ShardClient::update_priorities() does.
  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities,
                         Deadline deadline);

  std::vector<ShardState> shards() const;
  const ShardedCounters& counters() const { return counters_; }

private:
  using Time = std::chrono::steady_clock::time_point;
  struct Shard;
  struct Trajectory { // the current trajectory of a writer
    std::uint64_t id = 0;
    std::uint64_t home = 0; // number of its shard; 0: not chosen yet
    bool ended = false;     // the next insertion begins another trajectory
    std::uint64_t used = 0;
  };
  struct Part { // rows of a batch that come from one shard
    Shard* shard = nullptr;
    std::int64_t first = 0;
    std::int64_t rows = 0;
    double share = 0; // probability that a row comes from this shard
    bool done = false;
  };
  struct Plan {
    const void* into = nullptr;
    std::int64_t count = 0;
    std::vector<Part> parts;
  };
  enum class Outcome { done, late, lost };

  void tend(Time now); // calls poll() every few milliseconds
  void look_after(Shard& shard, Time now);
  void leave(Shard& shard, const std::string& why);
  template <typename Call>
  bool attempt(Shard& shard, Call call);
  bool await(Shard& shard, Deadline deadline);
  void rest(Deadline deadline);
  bool any_lives() const;
  [[noreturn]] void fail_without_shards() const;

  Trajectory& trajectory_of(const Insertion& insertion);
  std::uint64_t new_number();
  Shard* numbered(std::uint64_t number);
  Shard* home_of(const Trajectory& trajectory, const std::vector<std::uint64_t>& full);

  bool share_out(Deadline deadline);
  void refresh(bool all, Deadline deadline);
  void plan_parts();
  void drop_plan(); // cancels the requests of the planned parts
  Outcome collect(const BatchView& batch, std::int64_t first_row, Deadline deadline,
                  std::chrono::milliseconds patience);
  void finish(const Part& part, const BatchView& batch, std::int64_t first_row);
  void put_items(const BatchView& batch, std::int64_t first_row) const;

  env::wire::Context& context_;
  TransitionSpec spec_;
  ShardedClientOptions options_;
  Random random_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::uint64_t> hashes_; // of the shards' names
  std::uint64_t last_number_ = 0;
  std::unordered_map<std::uint64_t, Trajectory> trajectories_; // by writer
  std::uint64_t used_ = 0;
  Plan plan_;
  std::int64_t batches_ = 0; // batches planned so far
  Time tended_{};
  std::size_t turn_ = 0; // index of the shard to wait for next, modulo their number
  ShardedCounters counters_;
};

} // namespace troupe::replay
