// How long it takes until every surviving rank of 3 knows by name the rank that failed in the
// middle of all_reduces of 25 MiB: it is killed, frozen (with a deadline of 2 s) or makes another
// call. The time runs from the signal or the wrong call to the last survivor's exception. Also how
// long it takes until all ranks refuse an update after one rank's gradient was not finite, from
// before its backward pass. The ranks are processes over shared memory, TCP and both (ranks 0 and 2
// on one nominal host, rank 1 on another), and threads, where a rank cannot be killed but leaves.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <latch>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <torch/optim/sgd.h>

#include "collectives/backends/hierarchical_backend.hpp"
#include "collectives/communicator.hpp"
#include "collectives/rendezvous/rendezvous.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/rank_process.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"

namespace troupe::experiments {
namespace {

using collectives::CollectiveError;
using collectives::Communicator;
using collectives::ReduceOp;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 3;
constexpr std::int64_t kFaultElements = 25 << 18;
constexpr int kCallsBefore = 3;
const collectives::CommunicatorOptions kOptions{.timeout = std::chrono::seconds(2)};

double now() { // seconds, on a clock shared by all processes of the host
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

const std::vector<std::string> kOtherCalls = {"another collective", "another shape", "another type",
                                              "another operation"};

const std::string kNotFinite = "NaN in a gradient";

/// Makes rank 1's call in place of the all_reduce of the other ranks.
void call_otherwise(Communicator& communicator, const std::string& fault) {
  auto half = at::ones({kFaultElements / 2}, at::kFloat);
  auto wide = at::ones({kFaultElements}, at::kDouble);
  auto tensor = at::ones({kFaultElements}, at::kFloat);
  if (fault == "another collective")
    communicator.barrier();
  else if (fault == "another shape")
    communicator.all_reduce(half, ReduceOp::mean);
  else if (fault == "another type")
    communicator.all_reduce(wide, ReduceOp::mean);
  else
    communicator.all_reduce(tensor, ReduceOp::sum);
}

struct End {
  double at = 0;
  std::string message;
};

/// Repeats all_reduce until a rank fails.
End sum_until_failure(Communicator& communicator) {
  auto tensor = at::ones({kFaultElements}, at::kFloat);
  try {
    while (true)
      communicator.all_reduce(tensor, ReduceOp::mean);
  } catch (const CollectiveError& error) {
    return {now(), error.what()};
  }
}

void sum_before(Communicator& communicator) {
  auto tensor = at::ones({kFaultElements}, at::kFloat);
  for (int call = 0; call < kCallsBefore; ++call)
    communicator.all_reduce(tensor, ReduceOp::mean);
}

collectives::StoreFactory factory_of(const Seat& seat) {
  if (seat.backend == "tcp")
    return collectives::tcp_over_store();
  if (seat.backend == "shared_memory")
    return collectives::shared_memory_over_store();
  return collectives::hierarchical_over_store(collectives::shared_memory_over_store(),
                                              collectives::tcp_over_store(),
                                              seat.rank == 1 ? "odd" : "even");
}

void say_running() {
  std::printf("running %.9f\n", now());
  std::fflush(stdout);
}

/// Trains until an update is refused. One of rank 1's gradients is not finite.
End train_until_refused(Communicator& communicator) {
  auto parameter = at::ones({kFaultElements}, at::kFloat).requires_grad_();
  learner::WrappedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(std::vector<at::Tensor>{parameter},
                                          torch::optim::SGDOptions(0.1)),
      &communicator);
  try {
    for (int update = 0;; ++update) {
      const bool odd = update == kCallsBefore && communicator.rank() == 1;
      if (update == kCallsBefore)
        say_running();
      optimizer.zero_grad();
      (parameter * (odd ? std::nan("") : 1.0)).sum().backward();
      optimizer.step();
    }
  } catch (const std::runtime_error& error) {
    return {now(), error.what()};
  }
}

/// The process of a rank. Prints "running", and its end when that comes. The note names the fault.
void be_rank(const Seat& seat) {
  at::set_num_threads(1);
  const auto communicator =
      factory_of(seat)(collectives::connect_rendezvous("127.0.0.1", seat.port, kOptions), seat.rank,
                       seat.size, kOptions);
  if (seat.note == kNotFinite) {
    const auto end = train_until_refused(*communicator);
    std::printf("%.9f %s\n", end.at, end.message.c_str());
    std::fflush(stdout);
    std::_Exit(0);
  }
  sum_before(*communicator);
  say_running();
  if (seat.rank == 1 && seat.note.starts_with("another")) {
    try {
      call_otherwise(*communicator, seat.note);
    } catch (const CollectiveError&) {
    }
    std::_Exit(0);
  }
  const auto end = sum_until_failure(*communicator);
  std::printf("%.9f %s\n", end.at, end.message.c_str());
  std::fflush(stdout);
  std::_Exit(0);
}

struct Outcome {
  double seconds = 0; // until both survivors know
  std::string message;
};

Outcome outcome_of(double begin, const std::vector<End>& ends) {
  Outcome result;
  for (const auto& end : ends) {
    result.seconds = std::max(result.seconds, end.at - begin);
    result.message = end.message;
    if (end.message.find("rank 1") == std::string::npos
        && end.message.find("replica 1") == std::string::npos)
      throw std::runtime_error("bench collective_faults: a survivor does not name rank 1: "
                               + end.message);
  }
  return result;
}

Outcome with_processes(const std::string& backend, const std::string& fault,
                       const BenchOptions& options) {
  const collectives::RendezvousServer rendezvous("127.0.0.1");
  const auto ranks =
      start_ranks("collective_faults", backend, kRanks, options, fault, rendezvous.port());
  double begin = 0;
  for (const auto& rank : ranks) {
    const auto line = rank.line();
    if (!line.starts_with("running "))
      throw std::runtime_error("bench collective_faults: " + backend + ": " + line);
    if (&rank == &ranks[1])
      begin = std::stod(line.substr(8));
  }
  if (!fault.starts_with("another") && fault != kNotFinite) {
    begin = now();
    ranks[1].signal(fault == "kill -9" ? SIGKILL : SIGSTOP);
  }
  std::vector<End> ends;
  for (const int survivor : {0, 2}) {
    std::istringstream line(ranks[static_cast<std::size_t>(survivor)].line());
    End end;
    if (!(line >> end.at >> std::ws) || !std::getline(line, end.message))
      throw std::runtime_error("bench collective_faults: " + backend + ", " + fault
                               + ": a survivor ended without a message");
    ends.push_back(end);
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
        sum_before(communicator);
        if (rank != 1) {
          ends[rank] = sum_until_failure(communicator);
          survivors.count_down();
          return;
        }
        begin = now();
        try {
          if (fault.starts_with("another"))
            call_otherwise(communicator, fault);
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
    std::vector<double> known;
    std::string message;
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
      const Outcome outcome = run();
      known.push_back(outcome.seconds * 1e3);
      message = outcome.message;
    }
    report_values(report, "collective_faults", "until all survivors know", "ms", known,
                  {{"backend", backend},
                   {"fault", fault},
                   {"ranks", std::to_string(kRanks)},
                   {"deadline", "2 s"},
                   {"said", message}});
  };
  for (const std::string backend : {"shared_memory", "tcp", "hierarchical"})
    for (const std::string& fault : {std::string("kill -9"), std::string("freeze"), kNotFinite})
      measure(backend, fault, [&] { return with_processes(backend, fault, options); });
  for (const std::string fault : {"leaves", "freeze"})
    measure("threads", fault, [&] { return with_threads(fault); });
  for (const auto& fault : kOtherCalls) {
    for (const std::string backend : {"shared_memory", "tcp", "hierarchical"})
      measure(backend, fault, [&] { return with_processes(backend, fault, options); });
    measure("threads", fault, [&] { return with_threads(fault); });
  }
}

} // namespace troupe::experiments
