#include "collectives/communicator.hpp"

#include "collectives/backends/backend_communicator.hpp"
#include "collectives/backends/thread_backend.hpp"

namespace troupe::collectives {

std::vector<std::unique_ptr<Communicator>>
make_thread_communicators(int size, const CommunicatorOptions& options) {
  if (size < 1)
    throw std::invalid_argument("make_thread_communicators: size " + std::to_string(size)
                                + " must be at least 1");
  if (options.timeout.count() <= 0)
    throw std::invalid_argument("make_thread_communicators: the timeout must be positive");
  const auto meeting = std::make_shared<ThreadRendezvous>(size, options.timeout);
  std::vector<std::unique_ptr<Communicator>> result;
  for (int rank = 0; rank < size; ++rank)
    result.push_back(std::make_unique<BackendCommunicator>(
        c10::make_intrusive<ThreadBackend>(rank, meeting), at::kCPU));
  return result;
}

} // namespace troupe::collectives
