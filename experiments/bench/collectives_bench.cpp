// all_reduce of float32 between 2, 4 and 8 ranks, interleaved: threads of this process, and
// processes over shared memory, over TCP on the loopback interface and over both (the even and the
// odd ranks on two nominal hosts). Latency: the median over iterations of rank 0's time in the
// call, with one computing thread per rank. Bus bandwidth: bytes * 2 (n - 1) / n / latency. All
// calls are checked across ranks.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "collectives/communicator.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/rank_process.hpp"

namespace troupe::experiments {
namespace {

using collectives::Communicator;
using Clock = std::chrono::steady_clock;

struct Size {
  std::int64_t bytes;
  int iterations; // per repetition; about one second for all sizes together
};
constexpr Size kSizes[] = {
    {1024, 400}, {65536, 300}, {1 << 20, 100}, {25 << 20, 12}, {100 << 20, 4}};

/// Checks a sum, so that a wrong one does not count as fast.
void verify(Communicator& communicator, std::int64_t elements) {
  auto tensor = at::full({elements}, communicator.rank() + 1, at::kFloat);
  communicator.all_reduce(tensor, collectives::ReduceOp::sum);
  const int expected = communicator.size() * (communicator.size() + 1) / 2;
  if (tensor.ne(expected).any().item<bool>())
    throw std::runtime_error("bench collectives: all_reduce over " + communicator.backend()
                             + " gave a wrong sum");
}

/// Seconds per call; every rank makes the same calls.
double latency(Communicator& communicator, const Size& size, double seconds) {
  const auto elements = size.bytes / static_cast<std::int64_t>(sizeof(float));
  const int iterations = std::max(3, static_cast<int>(size.iterations * seconds));
  verify(communicator, elements);
  auto tensor = at::zeros({elements}, at::kFloat);
  for (int i = 0; i < std::max(2, iterations / 10); ++i)
    communicator.all_reduce(tensor, collectives::ReduceOp::sum);
  communicator.barrier();
  std::vector<double> taken;
  for (int i = 0; i < iterations; ++i) {
    const auto begin = Clock::now();
    communicator.all_reduce(tensor, collectives::ReduceOp::sum);
    taken.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  communicator.barrier();
  return median_of(std::move(taken));
}

/// latencies[size] of rank 0, which its process prints in one line.
using Latencies = std::vector<double>;

Latencies measure_all(Communicator& communicator, double seconds) {
  at::set_num_threads(1);
  Latencies result;
  for (const auto& size : kSizes)
    result.push_back(latency(communicator, size, seconds));
  return result;
}

Latencies measure_threads(int ranks, double seconds) {
  auto communicators = collectives::make_thread_communicators(ranks);
  std::vector<Latencies> results(communicators.size());
  std::vector<std::exception_ptr> errors(communicators.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < communicators.size(); ++rank)
      threads.emplace_back([&, rank] {
        try {
          results[rank] = measure_all(*communicators[rank], seconds);
        } catch (...) {
          errors[rank] = std::current_exception();
        }
      });
  }
  for (const auto& error : errors)
    if (error)
      std::rethrow_exception(error);
  return results[0];
}

Latencies measure_processes(const std::string& backend, int ranks, const BenchOptions& options) {
  const auto processes = start_ranks("collectives", backend, ranks, options);
  std::istringstream line(processes[0].line());
  Latencies result;
  for (double value = 0; line >> value;)
    result.push_back(value);
  if (result.size() != std::size(kSizes))
    throw std::runtime_error("bench collectives: rank 0 over " + backend
                             + " ended without figures");
  for (const auto& process : processes)
    while (!process.line().empty()) {
    }
  return result;
}

void report_all(const std::string& backend, int ranks, const std::vector<Latencies>& repetitions,
                const Report& report) {
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    std::vector<double> microseconds, bandwidth;
    for (const auto& latencies : repetitions) {
      microseconds.push_back(latencies[i] * 1e6);
      bandwidth.push_back(static_cast<double>(kSizes[i].bytes) * 2 * (ranks - 1) / ranks
                          / latencies[i] / 1e9);
    }
    const FigureConfig config{{"backend", backend},
                              {"ranks", std::to_string(ranks)},
                              {"bytes", std::to_string(kSizes[i].bytes)},
                              {"type", "float32"}};
    report_values(report, "collectives", "all_reduce latency", "us", microseconds, config);
    report_values(report, "collectives", "all_reduce bus bandwidth", "GB/s", bandwidth, config);
  }
}

} // namespace

void bench_collectives(const BenchOptions& options, const Report& report) {
  if (!options.join.empty()) {
    const auto seat = parse_seat(options.join);
    const auto communicator = take(seat);
    std::ostringstream line;
    line.precision(9);
    for (const double seconds : measure_all(*communicator, options.seconds))
      line << seconds << ' ';
    if (seat.rank == 0)
      std::printf("%s\n", line.str().c_str());
    return;
  }
  for (const int ranks : {2, 4, 8}) {
    std::vector<Latencies> threads;
    std::map<std::string, std::vector<Latencies>> processes;
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
      threads.push_back(measure_threads(ranks, options.seconds));
      for (const std::string backend : {"shared_memory", "tcp", "hierarchical"})
        if (backend != "hierarchical" || ranks > 2)
          processes[backend].push_back(measure_processes(backend, ranks, options));
    }
    report_all("threads", ranks, threads, report);
    for (const auto& [backend, latencies] : processes)
      report_all(backend, ranks, latencies, report);
  }
}

} // namespace troupe::experiments
