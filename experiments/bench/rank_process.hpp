#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.hpp"
#include "env/processes/child_process.hpp"
#include "experiments/bench/bench.hpp"

namespace troupe::experiments {

/// The group and rank of a benchmark's process.
struct Seat {
  std::string backend; // "shared_memory", "tcp" or "hierarchical"
  int port = 0;        // port of the rendezvous on the loopback interface
  int rank = 0;
  int size = 0;
  std::string note; // from the starting process
};

/// Parses a seat written by start_ranks(), e.g. "shared_memory:4711:0:2:the note". Throws
/// std::invalid_argument.
Seat parse_seat(const std::string& text);

std::unique_ptr<collectives::Communicator>
take(const Seat& seat, const collectives::CommunicatorOptions& options = {});

/// Starts `size` processes that run `troupe bench STAGE --join SEAT` with these options. `port` is
/// that of an existing rendezvous; 0: rank 0 will serve one on a free port.
std::vector<ChildProcess> start_ranks(const std::string& stage, const std::string& backend,
                                      int size, const BenchOptions& options,
                                      const std::string& note = {}, int port = 0);

} // namespace troupe::experiments
