// What a table costs that is larger than its memory beside one that has room, turn by turn, and
// what its checkpoints cost, in the folder for temporary files (TMPDIR, 2 GB).
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/bench/bench.hpp"
#include "experiments/bench/bench_folder.hpp"
#include "replay/gather.hpp"
#include "replay/table.hpp"
#include "replay/table_checkpoint.hpp"
#include "replay/writer.hpp"

namespace troupe::experiments {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSteps = 25'000; // 530 MB of pictures
constexpr std::int64_t kMemory = std::int64_t{64} << 20;
constexpr std::int64_t kRoom = std::int64_t{4} << 30;
constexpr std::int64_t kBatch = 256;

replay::TransitionSpec pixels() {
  return {.frame = {"pixels", env::ElementType::uint8, {3, 84, 84}},
          .stack = 3,
          .action_size = 6,
          .n_step = 3};
}

/// Frames of which 300 of 21,168 bytes change.
class Player {
public:
  Player() : writer_(pixels(), 1), frame_(pixels().frame.bytes()) {
    for (std::byte& byte : frame_)
      byte = static_cast<std::byte>(random_());
  }
  replay::InsertionPtr next() {
    while (writer_.pending_items() < 8) {
      for (int i = 0; i < 300; ++i)
        frame_[random_() % frame_.size()] = static_cast<std::byte>(random_());
      std::ranges::copy(frame_, writer_.next_frame().begin());
      if (step_++ % 1000 == 0)
        writer_.begin();
      else
        writer_.append(action_, 1, 1, step_ % 1000 == 0);
    }
    return writer_.take();
  }

private:
  replay::TransitionWriter writer_;
  std::vector<std::byte> frame_;
  std::array<float, 6> action_{};
  std::mt19937 random_{1};
  std::int64_t step_ = 0;
};

struct Batch {
  Batch()
      : observation(kBatch * pixels().observation().bytes()),
        next_observation(observation.size()),
        action(kBatch * 6),
        reward(kBatch),
        discount(kBatch),
        key(kBatch) {}
  replay::BatchView view() {
    return {observation, next_observation, action, reward, discount, key};
  }
  std::vector<std::byte> observation, next_observation;
  std::vector<float> action, reward, discount;
  std::vector<std::uint64_t> key;
};

replay::TableConfig config(replay::Compression compression, std::int64_t max_bytes) {
  return {.max_items = 10'000'000,
          .max_bytes = max_bytes,
          .compression = compression,
          .limiter = {.kind = replay::LimiterKind::minimum_size}};
}

class DiskBench {
public:
  DiskBench(const BenchOptions& options, const Report& report, replay::Compression compression)
      : options_(options), report_(report), compression_(compression) {}

  void run() {
    for (int i = 0; i < options_.repetitions; ++i)
      one_round();
    tell("insertion, all in memory", "items/s", inserted_[0]);
    tell("insertion, 64 MiB in memory, the rest on disk", "items/s", inserted_[1]);
    tell("batches of 256 gathered, all in memory", "batches/s", sampled_[0]);
    tell("batches of 256 gathered, 64 MiB in memory, the rest on disk (cached)", "batches/s",
         sampled_[1]);
    tell("snapshot", "ms", snapshot_);
    tell("checkpoint of all, written", "ms", all_);
    tell("checkpoint with 1 % new, written", "ms", next_);
    tell("restored with its chunks left on disk", "ms", restored_[1]);
    tell("restored into memory", "ms", restored_[0]);
  }

private:
  void one_round() {
    const BenchFolder folder;
    replay::WindowReader reader;
    Batch batch;
    for (const bool on_disk : {false, true}) {
      replay::Table table(config(compression_, on_disk ? kMemory : kRoom), pixels(), 1);
      if (on_disk)
        table.spill_to(store(folder));
      Player player;
      double inserting = 0;
      while (table.stats().inserted < kSteps) {
        const replay::InsertionPtr made = player.next();
        inserting += seconds([&] { table.insert(*made); });
      }
      inserted_[on_disk].push_back(static_cast<double>(table.stats().inserted) / inserting);
      std::vector<replay::Item> items;
      int batches = 0;
      const double sampling = seconds([&] {
        for (const auto end = Clock::now() + std::chrono::duration<double>(options_.seconds);
             Clock::now() < end; ++batches) {
          table.sample(kBatch, items);
          gather(pixels(), items, batch.view(), 0, &reader);
        }
      });
      sampled_[on_disk].push_back(batches / sampling);
      if (on_disk)
        checkpoints(folder, table, player);
    }
  }

  void checkpoints(const BenchFolder& folder, replay::Table& table, Player& player) {
    replay::TableSnapshot snapshot;
    snapshot_.push_back(1e3 * seconds([&] { snapshot = table.snapshot(); }));
    all_.push_back(1e3 * seconds([&] { write_checkpoint(snapshot, folder.path / "1"); }));
    for (const std::int64_t end = table.stats().inserted + kSteps / 100;
         table.stats().inserted < end;)
      table.insert(*player.next());
    snapshot = table.snapshot();
    next_.push_back(
        1e3 * seconds([&] { write_checkpoint(snapshot, folder.path / "2", folder.path / "1"); }));
    for (const bool on_disk : {true, false}) {
      replay::Table restored(config(compression_, on_disk ? kMemory : kRoom), pixels(), 1);
      restored.spill_to(store(folder));
      restored_[on_disk].push_back(1e3 * seconds([&] {
                                     restored.load(folder.path / "2",
                                                   replay::Table::ConfigChange::accept);
                                   }));
    }
  }

  static std::shared_ptr<replay::SegmentStore> store(const BenchFolder& folder) {
    return std::make_shared<replay::SegmentStore>(replay::SegmentStoreConfig{
        .folder = folder.path / "spill", .max_disk_bytes = std::uint64_t{4} << 30});
  }
  template <class Work>
  static double seconds(Work work) {
    const Clock::time_point begin = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  void tell(const char* metric, const char* unit, const std::vector<double>& values) {
    Figure figure = median_of(values);
    figure.bench = "replay_disk";
    figure.metric = metric;
    figure.unit = unit;
    figure.config = {{"frames", "84 x 84 x 3, 300 bytes of each change"},
                     {"items", std::to_string(kSteps)},
                     {"compression", replay::compression_name(compression_)}};
    report_(figure);
  }

  const BenchOptions& options_;
  const Report& report_;
  replay::Compression compression_;
  std::array<std::vector<double>, 2> inserted_, sampled_, restored_; // in memory, on disk
  std::vector<double> snapshot_, all_, next_;
};

} // namespace

void bench_replay_disk(const BenchOptions& options, const Report& report) {
  for (const auto compression : {replay::Compression::none, replay::Compression::packed,
                                 replay::Compression::lz4, replay::Compression::zstd})
    DiskBench(options, report, compression).run();
}

} // namespace troupe::experiments
