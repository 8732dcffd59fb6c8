#include "collectives/backend_communicator.hpp"
#include "collectives/rendezvous.hpp"
#include "collectives/shared_memory_backend.hpp"

namespace troupe::collectives {

std::unique_ptr<Communicator> make_shared_memory_communicator(const std::string& host, int port,
                                                              int rank, int size,
                                                              const CommunicatorOptions& options) {
  const auto store = make_rendezvous(host, port, rank, size, options);
  return std::make_unique<BackendCommunicator>(
      c10::make_intrusive<SharedMemoryBackend>(
          rank, SharedSegment::join(*store, rank, size, options.connect_timeout), options.timeout),
      at::kCPU);
}

} // namespace troupe::collectives
