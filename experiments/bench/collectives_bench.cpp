// all_reduce of float32 between 2 ranks: threads of this process, and LibTorch's Gloo over the
// loopback interface (each rank a thread with a communicator, sockets and I/O threads of its own).
// Latency: the median over the iterations of rank 0's time in the call, one computing thread per
// rank. Bus bandwidth: bytes * 2 (n - 1) / n / latency. All calls are checked across ranks.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "collectives/communicator.hpp"
#include "experiments/bench/bench.hpp"

namespace troupe::experiments {
namespace {

using collectives::Communicator;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 2;

struct Size {
  std::int64_t bytes;
  int iterations; // of a repetition, at one second each for all sizes together, about
};
constexpr Size kSizes[] = {
    {1024, 400}, {65536, 300}, {1 << 20, 100}, {25 << 20, 12}, {100 << 20, 4}};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A wrong sum must not be fast.
void verify(Communicator& communicator, std::int64_t elements) {
  auto tensor = at::full({elements}, communicator.rank() + 1, at::kFloat);
  communicator.all_reduce(tensor, collectives::ReduceOp::sum);
  const int expected = kRanks * (kRanks + 1) / 2;
  if (tensor.ne(expected).any().item<bool>())
    throw std::runtime_error("bench collectives: all_reduce over " + communicator.backend()
                             + " gave a wrong sum");
}

/// Seconds per call; every rank makes the same calls.
double latency(Communicator& communicator, std::int64_t bytes, int iterations) {
  const auto elements = bytes / static_cast<std::int64_t>(sizeof(float));
  verify(communicator, elements);
  auto tensor = at::zeros({elements}, at::kFloat);
  for (int i = 0; i < std::max(2, iterations / 10); ++i)
    communicator.all_reduce(tensor, collectives::ReduceOp::sum);
  communicator.barrier();
  std::vector<double> seconds;
  for (int i = 0; i < iterations; ++i) {
    const auto begin = Clock::now();
    communicator.all_reduce(tensor, collectives::ReduceOp::sum);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return median(std::move(seconds));
}

using Join = std::function<std::unique_ptr<Communicator>(int rank)>;

/// latencies[size][repetition] of rank 0.
std::vector<std::vector<double>> measure(const BenchOptions& options, const Join& join) {
  std::vector<std::vector<double>> result(std::size(kSizes));
  std::vector<std::exception_ptr> errors(kRanks);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&, rank] {
        at::set_num_threads(1);
        try {
          const auto communicator = join(rank);
          for (std::size_t i = 0; i < std::size(kSizes); ++i)
            for (int repetition = 0; repetition < options.repetitions; ++repetition) {
              const auto iterations = static_cast<int>(kSizes[i].iterations * options.seconds);
              const double seconds =
                  latency(*communicator, kSizes[i].bytes, std::max(3, iterations));
              if (rank == 0)
                result[i].push_back(seconds);
            }
          communicator->barrier();
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
  }
  for (const auto& error : errors)
    if (error)
      std::rethrow_exception(error);
  return result;
}

Figure figure_of(const std::string& metric, const std::string& unit, std::vector<double> values,
                 const std::string& backend, std::int64_t bytes) {
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  Figure figure{"collectives", metric, 0, *least, *greatest, unit, {}};
  figure.value = median(values);
  figure.config = {{"backend", backend},
                   {"ranks", std::to_string(kRanks)},
                   {"bytes", std::to_string(bytes)},
                   {"type", "float32"}};
  return figure;
}

void bench_backend(const BenchOptions& options, const Report& report, const std::string& backend,
                   const Join& join) {
  const auto latencies = measure(options, join);
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    std::vector<double> microseconds, bandwidth;
    for (const double seconds : latencies[i]) {
      microseconds.push_back(seconds * 1e6);
      bandwidth.push_back(static_cast<double>(kSizes[i].bytes) * 2 * (kRanks - 1) / kRanks / seconds
                          / 1e9);
    }
    report(figure_of("all_reduce latency", "us", microseconds, backend, kSizes[i].bytes));
    report(figure_of("all_reduce bus bandwidth", "GB/s", bandwidth, backend, kSizes[i].bytes));
  }
}

} // namespace

void bench_collectives(const BenchOptions& options, const Report& report) {
  auto threads = collectives::make_thread_communicators(kRanks);
  bench_backend(options, report, "threads",
                [&](int rank) { return std::move(threads[static_cast<std::size_t>(rank)]); });
  const int port = collectives::free_port();
  bench_backend(options, report, "gloo", [&](int rank) {
    return collectives::make_gloo_communicator("127.0.0.1", port, rank, kRanks);
  });
}

} // namespace troupe::experiments
