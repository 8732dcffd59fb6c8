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

#include "replay/random.hpp"
#include "replay/remote.hpp"

namespace troupe::replay {

/// A shard's name says which trajectories belong to it, wherever it listens.
struct ShardAddress {
  std::string name;
  std::string endpoint;
};

struct ShardedClientOptions {
  /// Of each shard. One that is silent for so long is left out.
  ShardClientOptions client{.silence = std::chrono::milliseconds(3000)};
  std::uint64_t seed = 1; // of how batches are shared out
  /// A shard whose window stays full for so long, because its limiter waits for samples, leaves the
  /// trajectory to the next one: else writers and samplers could wait for each other.
  std::chrono::milliseconds patience{100};
  std::int64_t statistics_every = 16; // batches: sizes and weights are so old at most
  std::function<void(const std::string&)> log = [](const std::string&) {}; // who goes and comes
};

struct ShardState {
  ShardAddress address;
  bool lives = true;
  std::size_t in_flight = 0; // insertions sent and not yet accepted
  TableStats stats;          // when they were last asked
};

struct ShardedCounters {
  std::int64_t left = 0;            // times that a shard was left out
  std::int64_t rejoined = 0;        // and came back
  std::int64_t spilled = 0;         // trajectories that went on elsewhere
  std::int64_t lost_insertions = 0; // in flight to shards when they were removed
  std::int64_t lost_priorities = 0; // of rows whose shard is gone or came back since
};

/// A client of several shards, which look like one table; one thread. Trajectories (what follows an
/// episode's first step, else a writer) go to shards by rendezvous hashing of their names; batches
/// are parts of all shards in proportion to TableStats::sampling_weight. A shard without a sign of
/// life is left out: its trajectories go on elsewhere, what it has not accepted stays in its window
/// and goes to it, once, when it is back, and only then it gets new ones. Waiting calls end at
/// their deadline; while no shard lives they then throw std::runtime_error that names all. What a
/// ShardClient throws on refusals passes through.
///
/// A row's key holds its shard above 48 bits of the key there, and is good until that shard has
/// been left out.
class ShardedClient {
public:
  /// Throws std::invalid_argument as add() and ShardClient do. `context` outlives this.
  ShardedClient(env::wire::Context& context, const TransitionSpec& spec,
                const std::vector<ShardAddress>& shards, const ShardedClientOptions& options = {});
  ~ShardedClient(); // what is in flight is lost: flush() first
  ShardedClient(const ShardedClient&) = delete;
  ShardedClient& operator=(const ShardedClient&) = delete;

  /// From now on its part of the trajectories goes there; those begun stay. Throws
  /// std::invalid_argument on a name or an endpoint that is empty or there already.
  void add(const ShardAddress& shard);
  /// For good: what is in flight to it is lost and counted. Throws std::invalid_argument on a name
  /// that is not there.
  void remove(const std::string& name);

  /// False: the windows of all living shards are full (the caller keeps the insertion).
  bool insert(InsertionPtr insertion, Deadline deadline);
  /// True when all shards, also those left out, have accepted everything; false at the deadline.
  bool flush(Deadline deadline);
  /// Takes in what has been answered; finds out who is gone and who is back. Does not wait.
  void poll();

  /// Writes `count` rows as ShardClient::sample() does. Rows of a shard lie together, in the order
  /// in which shards were added; which shard gives how many depends on the seed and the statistics
  /// alone. `probability` is that of the choice among the items of all shards, `table_items` how
  /// many these are: importance_weights() then takes the batch as one part, and is unbiased.
  /// nullopt: not all of it before the deadline; a call with the same count, batch and row goes on,
  /// any other begins anew. A shard that goes meanwhile is left out and the batch begun again.
  std::optional<std::int64_t> sample(std::int64_t count, const BatchView& batch,
                                     std::int64_t first_row, Deadline deadline,
                                     std::chrono::milliseconds patience = {});

  /// To the shards that the rows came from. Priorities of rows whose shard has gone are counted and
  /// passed over. Throws as ShardClient::update_priorities().
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
  std::size_t turn_ = 0; // whom rest() listens to
  ShardedCounters counters_;
};

} // namespace troupe::replay
