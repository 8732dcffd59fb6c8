#include "learner/transparent/meeting.hpp"

#include <stdexcept>

#include "collectives/make_communicator.hpp"
#include "collectives/place.hpp"

namespace troupe::learner::transparent {

std::unique_ptr<collectives::Communicator> meet(const collectives::Place& place,
                                                const Settings& settings) {
  collectives::CommunicatorOptions options;
  options.timeout = std::chrono::seconds(settings.timeout_seconds);
  options.connect_timeout = options.timeout;
  const bool one_host = place.local_size == place.size;
  const std::string backend = !settings.backend.empty() ? settings.backend
                              : one_host                ? "shared_memory"
                                                        : "hierarchical";
  if (backend == "nccl" || backend == "auto") // gradients travel in the processor's memory
    throw std::invalid_argument("TROUPE_TRANSPARENT_BACKEND=" + backend
                                + " must be shared_memory, gloo or hierarchical");
  return collectives::make_communicator(backend, place, options);
}

} // namespace troupe::learner::transparent
