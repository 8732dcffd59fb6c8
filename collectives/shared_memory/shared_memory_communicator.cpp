#include "collectives/backends/backend_communicator.hpp"
#include "collectives/rendezvous/over_store.hpp"
#include "collectives/rendezvous/rendezvous.hpp"
#include "collectives/shared_memory/shared_memory_backend.hpp"

namespace troupe::collectives {

StoreFactory shared_memory_over_store() {
  return [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
            const CommunicatorOptions& options) -> std::unique_ptr<Communicator> {
    return std::make_unique<BackendCommunicator>(
        c10::make_intrusive<SharedMemoryBackend>(
            rank, SharedSegment::join(*store, rank, size, options.connect_timeout),
            options.timeout),
        at::kCPU);
  };
}

std::unique_ptr<Communicator> make_shared_memory_communicator(const std::string& host, int port,
                                                              int rank, int size,
                                                              const CommunicatorOptions& options) {
  return shared_memory_over_store()(make_rendezvous(host, port, rank, size, options), rank, size,
                                    options);
}

} // namespace troupe::collectives
