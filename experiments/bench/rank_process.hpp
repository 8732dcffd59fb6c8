#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collectives/communicator.hpp"
#include "collectives/socket.hpp"
#include "experiments/bench/bench.hpp"

namespace troupe::experiments {

/// Which rank of which group a process of a benchmark is.
struct Seat {
  std::string backend; // "shared_memory" or "gloo"
  int port = 0;        // of the rendezvous, on the loopback interface
  int rank = 0;
  int size = 0;
  std::string note; // from who started it
};

/// "shared_memory:4711:0:2:the note", as start_ranks() wrote it. Throws std::invalid_argument.
Seat parse_seat(const std::string& text);

std::unique_ptr<collectives::Communicator>
take(const Seat& seat, const collectives::CommunicatorOptions& options = {});

/// This program again, as one rank of a benchmark of collectives. Killed with this object at the
/// latest.
class RankProcess {
public:
  explicit RankProcess(std::vector<std::string> words);
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;
  ~RankProcess();

  void signal(int number) const;

  /// Its next line; "" when it has ended. Throws std::runtime_error when none comes for a minute.
  std::string line() const;

private:
  pid_t id_ = -1;
  collectives::Socket out_;
};

/// `size` processes that run `troupe bench STAGE --join SEAT` with these options.
std::vector<RankProcess> start_ranks(const std::string& stage, const std::string& backend, int size,
                                     const BenchOptions& options, const std::string& note = {});

} // namespace troupe::experiments
