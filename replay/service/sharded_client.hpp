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

/// A shard's name determines its trajectories, whatever its endpoint.
struct ShardAddress {
  std::string name;
  std::string endpoint;
};

struct ShardedClientOptions {
  /// Of each shard. A shard that is silent for this long is left out.
  ShardClientOptions client{.silence = std::chrono::milliseconds(3000)};
  std::uint64_t seed = 1; // of the division of batches
  /// If a shard's window stays full for this long, because its rate limiter waits for samples, the
  /// trajectory moves to the next one: else writers and samplers could wait for each other.
  std::chrono::milliseconds patience{100};
  std::int64_t statistics_every = 16; // batches: greatest age of sizes and weights
  std::function<void(const std::string&)> log = [](const std::string&) {
  }; // shards that leave and return
};

struct ShardState {
  ShardAddress address;
  bool lives = true;
  std::size_t in_flight = 0; // insertions sent and not yet accepted
  TableStats stats;          // of the last answer
};

struct ShardedCounters {
  std::int64_t left = 0;            // how often a shard was left out
  std::int64_t rejoined = 0;        // and came back
  std::int64_t spilled = 0;         // trajectories that moved to another shard
  std::int64_t lost_insertions = 0; // in flight to shards when they were removed
  std::int64_t lost_priorities = 0; // of rows whose shard was lost or restarted since
};

/// A client of several shards, which act as one table; one thread. Trajectories (the rows from an
/// episode's first step on, else a writer) go to shards by rendezvous hashing of their names;
/// batches are parts of all shards in proportion to TableStats::sampling_weight. A silent shard is
/// left out: its trajectories move elsewhere; unaccepted insertions stay in its window and are sent
/// once when it is back, before new ones. Waiting calls end at their deadline; while no shard lives
/// they then throw ShardSilence, which names all. What a ShardClient throws on refusals passes
/// through.
///
/// A row's key holds its shard's number above 48 bits of the key there, and is valid until that
/// shard is left out.
class ShardedClient {
public:
  /// Throws std::invalid_argument as add() and ShardClient do. `context` outlives this.
  ShardedClient(env::wire::Context& context, const TransitionSpec& spec,
                const std::vector<ShardAddress>& shards, const ShardedClientOptions& options = {});
  ~ShardedClient(); // what is in flight is lost: flush() first
  ShardedClient(const ShardedClient&) = delete;
  ShardedClient& operator=(const ShardedClient&) = delete;

  /// From now on the shard gets its part of new trajectories. Throws std::invalid_argument on an
  /// empty or duplicate name or endpoint.
  void add(const ShardAddress& shard);
  /// Removes a shard: its insertions in flight are lost and counted. Throws std::invalid_argument
  /// on an unknown name.
  void remove(const std::string& name);

  /// False: the windows of all living shards are full (the caller keeps the insertion).
  bool insert(InsertionPtr insertion, Deadline deadline);
  /// True once all shards, including left-out ones, have accepted everything; false at the
  /// deadline.
  bool flush(Deadline deadline);
  /// Handles answers; notices shards that are lost or back. Does not wait.
  void poll();

  /// Writes `count` rows as ShardClient::sample() does. Rows of a shard are contiguous, in the
  /// order in which shards were added; the division depends only on the seed and the statistics.
  /// `probability` is that of the choice among the items of all shards, `table_items` how many
  /// these are: importance_weights() then takes the batch as one part, and is unbiased. nullopt:
  /// not all of it before the deadline; a call with the same count, batch and row continues, any
  /// other starts a new batch. If a shard is lost meanwhile, it is left out and the batch starts
  /// again.
  std::optional<std::int64_t> sample(std::int64_t count, const BatchView& batch,
                                     std::int64_t first_row, Deadline deadline,
                                     std::chrono::milliseconds patience = {});

  /// To the shards that the rows came from. Counts and ignores priorities of rows whose shard was
  /// lost. Throws as ShardClient::update_priorities().
  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities,
                         Deadline deadline);

  std::vector<ShardState> shards() const;
  const ShardedCounters& counters() const { return counters_; }

private:
  using Time = std::chrono::steady_clock::time_point;
  struct Shard;
  struct Trajectory { // that a writer is at
    std::uint64_t id = 0;
    std::uint64_t home = 0; // number of a shard; 0: not yet chosen
    bool ended = false;     // with the next insertion another one begins
    std::uint64_t used = 0;
  };
  struct Part { // of a batch
    Shard* shard = nullptr;
    std::int64_t first = 0;
    std::int64_t rows = 0;
    double share = 0; // probability of a row to be of this shard
    bool done = false;
  };
  struct Plan {
    const void* into = nullptr;
    std::int64_t count = 0;
    std::vector<Part> parts;
  };
  enum class Outcome { done, late, lost };

  void tend(Time now); // poll() every few milliseconds
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
  Outcome collect(const BatchView& batch, std::int64_t first_row, Deadline deadline,
                  std::chrono::milliseconds patience);
  void finish(const Part& part, const BatchView& batch, std::int64_t first_row);
  void put_items(const BatchView& batch, std::int64_t first_row) const;

  env::wire::Context& context_;
  TransitionSpec spec_;
  ShardedClientOptions options_;
  Random random_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::uint64_t> hashes_; // of their names
  std::uint64_t last_number_ = 0;
  std::unordered_map<std::uint64_t, Trajectory> trajectories_; // by writer
  std::uint64_t used_ = 0;
  Plan plan_;
  std::int64_t batches_ = 0; // planned
  Time tended_{};
  std::size_t turn_ = 0; // of the shards, to be waited for
  ShardedCounters counters_;
};

} // namespace troupe::replay
