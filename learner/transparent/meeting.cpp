#include "learner/transparent/meeting.hpp"

#include <stdexcept>

#include "collectives/communicator.hpp"
#include "collectives/place.hpp"

namespace troupe::learner::transparent {

std::unique_ptr<collectives::Communicator> meet(const collectives::Place& place,
                                                const Settings& settings) {
  if (place.role != "worker" && place.role != "chief")
    throw std::invalid_argument("the role is " + place.role
                                + "; a transparent program has workers and a chief alone");
  if (place.rendezvous_host.empty() || place.rendezvous_port == 0)
    throw std::invalid_argument("MASTER_ADDR and MASTER_PORT are not set; over several hosts set "
                                "them to an address and a free port of rank 0's host");
  if (place.rendezvous_served)
    throw std::invalid_argument("MASTER_PORT is served by torchrun itself; start torchrun with "
                                "TORCHELASTIC_USE_AGENT_STORE=False, or use `troupe transparent`");
  collectives::CommunicatorOptions options;
  options.timeout = std::chrono::seconds(settings.timeout_seconds);
  options.connect_timeout = options.timeout;
  const bool one_host = place.local_size == place.size;
  const std::string backend = !settings.backend.empty() ? settings.backend
                              : one_host                ? "shared_memory"
                                                        : "gloo";
  const auto& host = place.rendezvous_host;
  const int port = place.rendezvous_port;
  if (backend == "shared_memory" && one_host)
    return collectives::make_shared_memory_communicator(host, port, place.rank, place.size,
                                                        options);
  if (backend == "gloo" && !place.address.empty())
    return collectives::make_gloo_communicator(host, port, place.rank, place.size, options,
                                               place.address);
  if (backend == "gloo")
    throw std::invalid_argument("TROUPE_ADDRESS is not set; over several hosts set it to the "
                                "address of each process that the others reach");
  throw std::invalid_argument("TROUPE_TRANSPARENT_BACKEND=" + backend
                              + " must be gloo or, on one host, shared_memory; this run has "
                              + std::to_string(place.size) + " ranks, "
                              + std::to_string(place.local_size) + " of them on this host");
}

} // namespace troupe::learner::transparent
