// Tables larger than their memory, checkpoints, the storage below them compared with plain loops of
// the same sizes, column codecs, and large tables. Files are written to the folder for temporary
// files (TMPDIR, 2 GB).
#include <algorithm>
#include <array>
#include <chrono>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "env/random.hpp"
#include "experiments/bench/bench_folder.hpp"
#include "experiments/bench/replay/replay_setup.hpp"
#include "replay/batch/gather.hpp"
#include "replay/storage/segment_store.hpp"
#include "replay/table/table_checkpoint.hpp"

namespace troupe::experiments {

namespace {

using namespace replay_setup;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kDiskSteps = 25'000; // 530 MB of pictures
constexpr std::int64_t kMemory = std::int64_t{64} << 20;
constexpr std::int64_t kRoom = std::int64_t{4} << 30;
constexpr std::size_t kStorageBytes = std::size_t{512} << 20; // per repetition

/// A stream of frames in which 300 of 21,168 bytes change per step.
class DiskPlayer {
public:
  explicit DiskPlayer(const replay::TransitionSpec& spec)
      : writer_(replay::transition_writer(spec, 1)), frame_(spec.frame.bytes()) {
    for (std::byte& byte : frame_)
      byte = static_cast<std::byte>(random_.bits());
  }
  replay::InsertionPtr next() {
    while (writer_.pending_items() < 8) {
      for (int i = 0; i < 300; ++i)
        frame_[random_.bits() % frame_.size()] = static_cast<std::byte>(random_.bits());
      std::ranges::copy(frame_, writer_.next(replay::kFrame).begin());
      if (step_++ % 1000 == 0)
        begin_episode(writer_);
      else
        append_step(writer_, action_, 1, 1, step_ % 1000 == 0);
    }
    return writer_.take();
  }

private:
  replay::Writer writer_;
  std::vector<std::byte> frame_;
  std::array<float, 6> action_{};
  env::Random random_{1};
  std::int64_t step_ = 0;
};

/// A table larger than its memory and one that fits, interleaved, with their checkpoints.
class DiskBench {
public:
  DiskBench(const BenchOptions& options, replay::Compression compression)
      : options_(options), compression_(compression) {}

  void run(const Report& report) {
    for (int i = 0; i < options_.repetitions; ++i)
      one_round();
    const auto tell = [&](const char* metric, const char* unit, const std::vector<double>& values) {
      report_values(report, "replay_disk", metric, unit, values,
                    {{"frames", "84 x 84 x 3, 300 bytes of each change"},
                     {"items", std::to_string(kDiskSteps)},
                     {"compression", replay::compression_name(compression_)}});
    };
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
  replay::TableConfig config(bool on_disk) const {
    return {.max_items = 10'000'000,
            .max_bytes = on_disk ? kMemory : kRoom,
            .compression = compression_,
            .limiter = {.kind = replay::RateLimiterKind::minimum_size}};
  }

  void one_round() {
    const BenchFolder folder;
    replay::WindowReader reader;
    Batch batch(spec_);
    for (const bool on_disk : {false, true}) {
      replay::Table table(config(on_disk), spec_, 1);
      if (on_disk)
        table.spill_to(store(folder));
      DiskPlayer player(spec_);
      double inserting = 0;
      while (table.stats().inserted < kDiskSteps) {
        const replay::InsertionPtr made = player.next();
        inserting += seconds_of([&] { table.insert(*made); });
      }
      inserted_[on_disk].push_back(static_cast<double>(table.stats().inserted) / inserting);
      std::vector<replay::Item> items;
      int batches = 0;
      const double sampling = seconds_of([&] {
        for (const auto end = Clock::now() + std::chrono::duration<double>(options_.seconds);
             Clock::now() < end; ++batches) {
          table.sample(kBatch, items);
          gather(spec_, items, batch.view(), 0, &reader);
        }
      });
      sampled_[on_disk].push_back(batches / sampling);
      if (on_disk)
        checkpoints(folder, table, player);
    }
  }

  void checkpoints(const BenchFolder& folder, replay::Table& table, DiskPlayer& player) {
    replay::TableSnapshot snapshot;
    snapshot_.push_back(1e3 * seconds_of([&] { snapshot = table.snapshot(); }));
    all_.push_back(1e3 * seconds_of([&] { write_checkpoint(snapshot, folder.path / "1"); }));
    for (const std::int64_t end = table.stats().inserted + kDiskSteps / 100;
         table.stats().inserted < end;)
      table.insert(*player.next());
    snapshot = table.snapshot();
    next_.push_back(1e3 * seconds_of([&] {
                      write_checkpoint(snapshot, folder.path / "2", folder.path / "1");
                    }));
    for (const bool on_disk : {true, false}) {
      replay::Table restored(config(on_disk), spec_, 1);
      restored.spill_to(store(folder));
      restored_[on_disk].push_back(1e3 * seconds_of([&] {
                                     restored.load(folder.path / "2",
                                                   replay::Table::ConfigChange::accept);
                                   }));
    }
  }

  static std::shared_ptr<replay::SegmentStore> store(const BenchFolder& folder) {
    return std::make_shared<replay::SegmentStore>(replay::SegmentStoreConfig{
        .folder = folder.path / "spill", .max_disk_bytes = std::uint64_t{4} << 30});
  }

  const replay::TransitionSpec spec_{.frame = {"pixels", env::ElementType::uint8, {3, 84, 84}},
                                     .stack = 3,
                                     .action_size = 6,
                                     .n_step = 3};
  const BenchOptions& options_;
  replay::Compression compression_;
  std::array<std::vector<double>, 2> inserted_, sampled_, restored_; // in memory, on disk
  std::vector<double> snapshot_, all_, next_;
};

/// Blobs are appended to a segment store and read in random order from the page cache, interleaved
/// with pwrite and pread.
void bench_storage(const BenchOptions& options, const Report& report, std::size_t blob_bytes) {
  const BenchFolder folder;
  const std::size_t count = kStorageBytes / blob_bytes;
  env::Random random(1);
  std::vector<std::byte> blob(blob_bytes), out(blob_bytes);
  for (std::byte& byte : blob)
    byte = static_cast<std::byte>(random.bits());
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) {
    order[i] = i;
    std::swap(order[i], order[random.bits() % (i + 1)]);
  }
  std::array<std::vector<double>, 4> rates; // MB/s
  const double megabytes = static_cast<double>(count * blob_bytes) / 1e6;
  const auto measure = [&](std::size_t which, const std::function<void(std::size_t)>& one,
                           bool shuffled) {
    rates[which].push_back(megabytes / seconds_of([&] {
                             for (std::size_t k = 0; k < count; ++k)
                               one(shuffled ? order[k] : k);
                           }));
  };
  for (int i = 0; i < options.repetitions; ++i) {
    const int file = ::open(folder.path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const auto check = [&](ssize_t bytes) {
      if (bytes != static_cast<ssize_t>(blob_bytes))
        throw std::runtime_error("bench replay_disk: the plain loop failed: is the disk full?");
    };
    replay::SegmentStore store({folder.path, std::uint64_t{64} << 20});
    std::vector<replay::BlobRef> refs;
    for (const bool plain : {i % 2 == 0, i % 2 != 0}) // the second one finds more dirty pages
      if (plain)
        measure(
            1,
            [&](std::size_t k) {
              check(::pwrite(file, blob.data(), blob_bytes, static_cast<off_t>(k * blob_bytes)));
            },
            false);
      else
        measure(
            0, [&](std::size_t) { refs.push_back(store.append(blob)); }, false);
    measure(
        3,
        [&](std::size_t k) {
          check(::pread(file, out.data(), blob_bytes, static_cast<off_t>(k * blob_bytes)));
        },
        true);
    measure(
        2, [&](std::size_t k) { store.read(refs[k], out); }, true);
    ::close(file);
  }
  const char* names[] = {"storage append", "plain pwrite", "storage read in random order, cached",
                         "plain pread in random order, cached"};
  for (std::size_t i = 0; i < rates.size(); ++i)
    report_values(report, "replay_disk", names[i], "MB/s", rates[i],
                  {{"blob_bytes", std::to_string(blob_bytes)}, {"fsync", "no"}});
}

/// Nanoseconds per item in tables of up to 10^7 items. Each item is one float, so that they fit
/// into memory.
void bench_scale(const BenchOptions& options, const Report& report, std::int64_t items,
                 bool by_priority) {
  const Kind kind{
      "small", {.frame = {"state", env::ElementType::float32, {1}}, .action_size = 1}, items, 64};
  const replay::TableConfig config = config_of(kind);
  replay::Table table(by_priority ? prioritized(config) : config, kind.spec, 1);
  Stream stream(kind, 1);
  while (table.stats().items < items)
    table.insert(*stream.next(1024));
  const auto cost = [&](const std::string& metric, const std::function<double()>& chunk) {
    std::vector<double> nanoseconds;
    for (const double rate : measure_rates(options, chunk))
      nanoseconds.push_back(1e9 / rate);
    report_values(report, "replay_disk", (by_priority ? "prioritized " : "uniform ") + metric,
                  "ns/item", nanoseconds, {{"items", std::to_string(items)}});
  };
  std::vector<replay::Item> sampled;
  std::vector<std::uint64_t> key(kBatch);
  std::vector<double> priority(kBatch);
  replay::Random random(7);
  const auto first = static_cast<std::uint64_t>(table.stats().inserted - items);
  const auto update = [&] {
    for (std::size_t i = 0; i < key.size(); ++i) {
      key[i] = first + random.below(static_cast<std::uint64_t>(items));
      priority[i] = 0.1 + random.unit();
    }
    table.update_priorities(key, priority);
    return static_cast<double>(kBatch);
  };
  for (std::int64_t i = 0; by_priority && i < 2 * items / kBatch; ++i)
    update(); // varied priorities
  cost("sample of 256", [&] {
    table.sample(kBatch, sampled);
    return static_cast<double>(kBatch);
  });
  if (by_priority)
    cost("update of 256", update);
  cost("append+take+insert, 64 at a time", [&] {
    double inserted = 0;
    for (int i = 0; i < 16; ++i) {
      const auto insertion = stream.next(kind.insert);
      table.insert(*insertion);
      inserted += static_cast<double>(insertion->items.size());
    }
    return inserted;
  });
}

} // namespace

void bench_replay_disk(const BenchOptions& options, const Report& report) {
  for (const auto compression : {replay::Compression::none, replay::Compression::packed,
                                 replay::Compression::lz4, replay::Compression::zstd})
    DiskBench(options, compression).run(report);
  for (const std::size_t bytes :
       {std::size_t{16} << 10, std::size_t{128} << 10, std::size_t{1} << 20, std::size_t{16} << 20})
    bench_storage(options, report, bytes);
  bench_codec(options, report);
  for (const std::int64_t items :
       {10'000, 31'623, 100'000, 316'228, 1'000'000, 3'162'278, 10'000'000})
    for (const bool by_priority : {false, true})
      bench_scale(options, report, items, by_priority);
}

} // namespace troupe::experiments
