#pragma once

// Shared by the replay benchmarks.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "env/wire/shared_memory.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/forked_server.hpp"
#include "replay/batch/batch.hpp"
#include "replay/table/table.hpp"
#include "replay/writers/n_step_items.hpp"

namespace troupe::experiments::replay_setup {

constexpr std::int64_t kBatch = 256;

/// The items to be measured and the size of the table. The items are those of the peers'
/// benchmarks: 24 floats and 6 actions, or 84x84x9 pixels, which are three stacked frames.
struct Kind {
  std::string name;
  replay::TransitionSpec spec;
  std::int64_t items;
  int insert; // items per insertion when they are inserted in batches
};

std::vector<Kind> kinds(); // "state", "pixel"

replay::TableConfig config_of(const Kind& kind);
replay::TableConfig prioritized(replay::TableConfig config);

/// A stream of time steps. Frames are copied into place, as a renderer would write them.
class Stream {
public:
  Stream(const Kind& kind, std::uint64_t writer_id);

  void step();
  replay::InsertionPtr next(std::int64_t items);
  replay::InsertionPtr take() { return writer_.take(); }

  std::size_t frame_bytes() const { return frame_bytes_; }
  /// The frame that will be written `ahead` steps from now; 64 frames repeat.
  const std::byte* frame(std::size_t ahead = 0) const;

private:
  static constexpr std::size_t kFrames = 64;
  replay::Writer writer_;
  std::vector<float> action_;
  std::size_t frame_bytes_;
  std::vector<std::byte> frames_;
  std::int64_t step_ = 0;
};

struct Batch {
  explicit Batch(const replay::TransitionSpec& spec);
  replay::BatchView view() {
    return {observation, next_observation, action, reward, discount, key};
  }
  std::vector<std::byte> observation, next_observation;
  std::vector<float> action, reward, discount;
  std::vector<std::uint64_t> key;
};

double seconds_of(const std::function<void()>& work);
void report_rate(const BenchOptions& options, const Report& report, const Kind& kind,
                 const std::string& metric, const std::string& unit, const std::string& where,
                 const std::function<double()>& chunk);

using Sharing = std::optional<env::wire::SharedMemory>;

/// A separate process with a shard and its data port; the destructor ends it. Construct it before
/// this process starts threads.
struct ServerProcess : ForkedServer {
  ServerProcess(const replay::TableConfig& config, const replay::Signature& signature,
                const Sharing& sharing);
};

/// The processor time that another process has used so far, over all its threads, in seconds.
double cpu_seconds(pid_t process);

/// Part of the stage replay_disk: bytes per transition, encoding in frames/s and decoding in GB/s,
/// for frames of tasks.
void bench_codec(const BenchOptions& options, const Report& report);

/// Part of the stage replay: items/s with 1, 2 and 4 shards, each in its own process with one
/// client.
void bench_shards(const BenchOptions& options, const Report& report, const Kind& kind);

} // namespace troupe::experiments::replay_setup
