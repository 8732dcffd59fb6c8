// What replay's storage costs over the bare file system, in the folder for temporary files
// (TMPDIR): each figure of ours beside a loop of pwrite or pread of the same sizes, turn by turn.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "env/random.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/bench_folder.hpp"
#include "replay/checkpoint_writer.hpp"
#include "replay/segment_store.hpp"

namespace troupe::experiments {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kTotalBytes = std::size_t{512} << 20; // of each repetition
constexpr std::uint64_t kSegmentBytes = std::uint64_t{64} << 20;

/// A file without a name, as the store's.
struct PlainFile {
  explicit PlainFile(const fs::path& folder)
      : descriptor(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
    if (descriptor < 0)
      throw std::runtime_error("cannot make a file in " + folder.string());
  }
  ~PlainFile() { ::close(descriptor); }
  int descriptor;
};

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void check(bool fine) {
  if (!fine)
    throw std::runtime_error("the plain loop failed: is the disk full?");
}

std::vector<std::byte> blob_of(std::size_t bytes) {
  env::Random random(1);
  std::vector<std::byte> blob(bytes);
  for (std::byte& byte : blob)
    byte = static_cast<std::byte>(random.bits());
  return blob;
}

std::vector<std::size_t> shuffled(std::size_t count) {
  env::Random random(2);
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i)
    order[i] = i;
  for (std::size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[random.bits() % i]);
  return order;
}

/// Writing into the page cache, and reading from it in random order.
void bench_spill(const BenchOptions& options, const Report& report, std::size_t blob_bytes) {
  const BenchFolder folder;
  const std::size_t count = kTotalBytes / blob_bytes;
  const std::vector<std::byte> blob = blob_of(blob_bytes);
  const std::vector<std::size_t> order = shuffled(count);
  std::vector<std::byte> out(blob_bytes);
  std::vector<double> plain_write, append, plain_read, read;
  const double megabytes = static_cast<double>(count * blob_bytes) / 1e6;
  for (int i = 0; i < options.repetitions; ++i) {
    const PlainFile file(folder.path);
    replay::SegmentStore store({folder.path, kSegmentBytes});
    std::vector<replay::BlobRef> refs;
    const auto write_plain = [&] {
      plain_write.push_back(megabytes / seconds_of([&] {
                              for (std::size_t k = 0; k < count; ++k)
                                check(::pwrite(file.descriptor, blob.data(), blob_bytes,
                                               static_cast<off_t>(k * blob_bytes))
                                      == static_cast<ssize_t>(blob_bytes));
                            }));
    };
    if (i % 2 == 0)
      write_plain(); // whoever is second meets more pages that wait for the disk
    append.push_back(megabytes / seconds_of([&] {
                       for (std::size_t k = 0; k < count; ++k)
                         refs.push_back(store.append(blob));
                     }));
    if (i % 2 == 1)
      write_plain();
    plain_read.push_back(megabytes / seconds_of([&] {
                           for (const std::size_t k : order)
                             check(::pread(file.descriptor, out.data(), blob_bytes,
                                           static_cast<off_t>(k * blob_bytes))
                                   == static_cast<ssize_t>(blob_bytes));
                         }));
    read.push_back(megabytes / seconds_of([&] {
                     for (const std::size_t k : order)
                       store.read(refs[k], out);
                   }));
  }
  const auto tell = [&](const std::string& metric, const std::vector<double>& values) {
    Figure figure = median_of(values);
    figure.bench = "storage";
    figure.metric = metric;
    figure.unit = "MB/s";
    figure.config = {{"blob_bytes", std::to_string(blob_bytes)}, {"fsync", "no"}};
    report(figure);
  };
  tell("spill: append", append);
  tell("plain pwrite", plain_write);
  tell("spill: read in random order, cached", read);
  tell("plain pread in random order, cached", plain_read);
}

/// A whole checkpoint, and one of which a hundredth is new, to the disk.
void bench_checkpoint(const BenchOptions& options, const Report& report) {
  const BenchFolder folder;
  constexpr std::size_t kBlobBytes = std::size_t{256} << 10;
  constexpr std::uint64_t kCount = kTotalBytes / kBlobBytes;
  const std::vector<std::byte> blob = blob_of(kBlobBytes);
  std::vector<double> plain, whole, incremental, verified;
  const auto write = [&](const char* name, const fs::path& previous, std::uint64_t first) {
    replay::CheckpointWriter writer(folder.path / name, previous, {.segment_bytes = kSegmentBytes});
    for (std::uint64_t i = first; i < first + kCount; ++i)
      if (!writer.keep({1, i, 0}))
        writer.add({1, i, 0}, blob);
    writer.commit({});
  };
  for (int i = 0; i < options.repetitions; ++i) {
    plain.push_back(1e3 * seconds_of([&] {
                      const PlainFile file(folder.path);
                      for (std::uint64_t k = 0; k < kCount; ++k)
                        check(::write(file.descriptor, blob.data(), kBlobBytes)
                              == static_cast<ssize_t>(kBlobBytes));
                      check(::fsync(file.descriptor) == 0);
                    }));
    whole.push_back(1e3 * seconds_of([&] { write("1", {}, 0); }));
    incremental.push_back(1e3 * seconds_of([&] { write("2", folder.path / "1", kCount / 100); }));
    verified.push_back(1e3
                       * seconds_of([&] { replay::CheckpointReader(folder.path / "2").verify(); }));
    fs::remove_all(folder.path / "1");
    fs::remove_all(folder.path / "2");
  }
  const auto tell = [&](const std::string& metric, const std::vector<double>& values) {
    Figure figure = median_of(values);
    figure.bench = "storage";
    figure.metric = metric;
    figure.unit = "ms";
    figure.config = {{"blob_bytes", std::to_string(kBlobBytes)},
                     {"blobs", std::to_string(kCount)},
                     {"fsync", "yes"}};
    report(figure);
  };
  tell("checkpoint of all", whole);
  tell("plain write of as much", plain);
  tell("checkpoint with 1 % new", incremental);
  tell("verification, cached", verified);
}

} // namespace

void bench_storage(const BenchOptions& options, const Report& report) {
  for (const std::size_t bytes :
       {std::size_t{16} << 10, std::size_t{128} << 10, std::size_t{1} << 20, std::size_t{16} << 20})
    bench_spill(options, report, bytes);
  bench_checkpoint(options, report);
}

} // namespace troupe::experiments
