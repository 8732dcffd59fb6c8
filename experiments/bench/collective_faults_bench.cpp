// How long until every surviving rank of 3 knows, by name, of a rank that is killed, frozen (with a
// deadline of 2 s) or calls something else, in the middle of all_reduces of 25 MiB: from the signal
// or the wrong call to the last survivor's exception. Processes over shared memory and Gloo, and
// threads, where there is nothing to kill: there a rank leaves.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <latch>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>

#include "collectives/communicator.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/rank_process.hpp"

namespace troupe::experiments {
namespace {

using collectives::CollectiveError;
using collectives::Communicator;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 3;
constexpr std::int64_t kElements = 25 << 18;
constexpr int kCallsBefore = 3;
const collectives::CommunicatorOptions kOptions{.timeout = std::chrono::seconds(2)};

double now() { // seconds, the same for all processes of the host
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

struct End {
  double at = 0;
  std::string message;
};

/// Sums until somebody fails; `odd_after`: after so many calls, makes another.
template <class Ready>
End sum_until_failure(Communicator& communicator, std::optional<int> odd_after, Ready ready) {
  auto tensor = at::ones({kElements}, at::kFloat);
  try {
    for (int call = 0;; ++call) {
      if (call == kCallsBefore)
        ready();
      if (call == odd_after)
        communicator.barrier();
      communicator.all_reduce(tensor, collectives::ReduceOp::mean);
    }
  } catch (const CollectiveError& error) {
    return {now(), error.what()};
  }
}

/// A rank's process: says "running", and the end when it comes. The note is the fault.
void be_rank(const Seat& seat) {
  at::set_num_threads(1);
  const auto communicator = take(seat, kOptions);
  const auto end = sum_until_failure(
      *communicator,
      seat.note == "another call" && seat.rank == 1 ? std::optional(kCallsBefore) : std::nullopt,
      [] {
        std::printf("running %.9f\n", now());
        std::fflush(stdout);
      });
  std::printf("%.9f %s\n", end.at, end.message.c_str());
  std::fflush(stdout);
  std::_Exit(0); // a rank that failed waits for nobody
}

struct Outcome {
  double seconds = 0;
  std::string message;
};

Outcome outcome_of(double begin, const std::vector<End>& ends) {
  Outcome result;
  for (const auto& end : ends) {
    result.seconds = std::max(result.seconds, end.at - begin);
    result.message = end.message;
    if (end.message.find("rank 1") == std::string::npos)
      throw std::runtime_error("bench collective_faults: a survivor does not name rank 1: "
                               + end.message);
  }
  return result;
}

Outcome with_processes(const std::string& backend, const std::string& fault,
                       const BenchOptions& options) {
  const auto ranks = start_ranks("collective_faults", backend, kRanks, options, fault);
  double begin = 0;
  for (const auto& rank : ranks) {
    const auto line = rank.line();
    if (line.rfind("running ", 0) != 0)
      throw std::runtime_error("bench collective_faults: " + backend + ": " + line);
    if (&rank == &ranks[1])
      begin = std::stod(line.substr(8));
  }
  if (fault != "another call") {
    begin = now();
    ranks[1].signal(fault == "kill -9" ? SIGKILL : SIGSTOP);
  }
  std::vector<End> ends;
  for (const int survivor : {0, 2}) {
    const auto line = ranks[static_cast<std::size_t>(survivor)].line();
    const auto space = line.find(' ');
    if (space == std::string::npos)
      throw std::runtime_error("bench collective_faults: a survivor ended without a word");
    ends.push_back({std::stod(line), line.substr(space + 1)});
  }
  return outcome_of(begin, ends);
}

Outcome with_threads(const std::string& fault) {
  auto communicators = collectives::make_thread_communicators(kRanks, kOptions);
  std::vector<End> ends(kRanks);
  std::latch survivors(kRanks - 1);
  double begin = 0;
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        at::set_num_threads(1);
        auto& communicator = *communicators[rank];
        if (rank != 1) {
          ends[rank] = sum_until_failure(communicator, std::nullopt, [] {});
          survivors.count_down();
          return;
        }
        auto tensor = at::ones({kElements}, at::kFloat);
        for (int call = 0; call < kCallsBefore; ++call)
          communicator.all_reduce(tensor, collectives::ReduceOp::mean);
        begin = now();
        try {
          if (fault == "another call")
            communicator.barrier();
        } catch (const CollectiveError&) {
        }
        if (fault == "leaves")
          communicators[rank].reset();
        survivors.wait();
      });
  }
  return outcome_of(begin, {ends[0], ends[2]});
}

} // namespace

void bench_collective_faults(const BenchOptions& options, const Report& report) {
  if (!options.join.empty())
    return be_rank(parse_seat(options.join));
  const auto measure = [&](const std::string& backend, const std::string& fault, auto run) {
    std::vector<double> milliseconds;
    std::string message;
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
      const Outcome outcome = run();
      milliseconds.push_back(outcome.seconds * 1e3);
      message = outcome.message;
    }
    auto figure = median_of(milliseconds);
    figure.bench = "collective_faults";
    figure.metric = "until all survivors know";
    figure.unit = "ms";
    figure.config = {{"backend", backend},
                     {"fault", fault},
                     {"ranks", std::to_string(kRanks)},
                     {"deadline", "2 s"},
                     {"said", message}};
    report(figure);
  };
  for (const std::string backend : {"shared_memory", "gloo"})
    for (const std::string fault : {"kill -9", "freeze", "another call"})
      measure(backend, fault, [&] { return with_processes(backend, fault, options); });
  for (const std::string fault : {"leaves", "freeze", "another call"})
    measure("threads", fault, [&] { return with_threads(fault); });
}

} // namespace troupe::experiments
