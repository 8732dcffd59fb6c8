#include "experiments/bench/rank_process.hpp"

#include <sstream>
#include <stdexcept>

#include "collectives/backends/hierarchical_backend.hpp"
#include "collectives/rendezvous/rendezvous.hpp"
#include "env/text/number_in.hpp"

namespace troupe::experiments {

Seat parse_seat(const std::string& text) {
  std::istringstream stream(text);
  Seat seat;
  std::string port, rank, size;
  const auto number = [&text](const std::string& word) {
    const auto value = env::number_in<int>(word);
    if (!value)
      throw std::invalid_argument("--join is \"" + text
                                  + "\"; it must be BACKEND:PORT:RANK:SIZE:NOTE, and is for the "
                                    "benchmark's own processes");
    return *value;
  };
  std::getline(stream, seat.backend, ':');
  std::getline(stream, port, ':');
  std::getline(stream, rank, ':');
  std::getline(stream, size, ':');
  std::getline(stream, seat.note);
  seat.port = number(port);
  seat.rank = number(rank);
  seat.size = number(size);
  return seat;
}

std::unique_ptr<collectives::Communicator> take(const Seat& seat,
                                                const collectives::CommunicatorOptions& options) {
  if (seat.backend == "tcp")
    return collectives::make_tcp_communicator("127.0.0.1", seat.port, seat.rank, seat.size,
                                              options);
  if (seat.backend == "hierarchical") // two nominal hosts: the even ranks and the odd ones
    return collectives::hierarchical_over_store(collectives::shared_memory_over_store(),
                                                collectives::tcp_over_store(),
                                                seat.rank % 2 == 0 ? "even" : "odd")(
        collectives::make_rendezvous("127.0.0.1", seat.port, seat.rank, seat.size, options),
        seat.rank, seat.size, options);
  return collectives::make_shared_memory_communicator("127.0.0.1", seat.port, seat.rank, seat.size,
                                                      options);
}

std::vector<ChildProcess> start_ranks(const std::string& stage, const std::string& backend,
                                      int size, const BenchOptions& options,
                                      const std::string& note, int port) {
  const auto meeting = std::to_string(port != 0 ? port : collectives::free_port());
  std::vector<ChildProcess> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.emplace_back("/proc/self/exe",
                       std::vector<std::string>{stage, "--seconds", std::to_string(options.seconds),
                                                "--join",
                                                backend + ":" + meeting + ":" + std::to_string(rank)
                                                    + ":" + std::to_string(size) + ":" + note});
  return ranks;
}

} // namespace troupe::experiments
