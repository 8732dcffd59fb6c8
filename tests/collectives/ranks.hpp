#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>

#include "collectives/backends/backend_communicator.hpp"
#include "collectives/backends/hierarchical_backend.hpp"
#include "collectives/rendezvous/rendezvous.hpp"
#include "collectives/shared_memory/shared_memory_backend.hpp"
#include "tests/reserved_port.hpp"
#include "tests/text.hpp"

namespace troupe::collectives {

/// shared_memory: each rank maps the memory separately, like a process; shared_threads: the ranks
/// share one mapping, which ThreadSanitizer can follow.
/// mpi: this process is one of the ranks. even_hosts: two hosts of threads connected by TCP, with
/// the ranks dealt out in turn; uneven_hosts: the last rank is alone on its host; one_host: all
/// ranks are on one.
enum class Means {
  threads,
  tcp,
  shared_memory,
  shared_threads,
  mpi,
  even_hosts,
  uneven_hosts,
  one_host
};

/// LibTorch's TCPStore is not instrumented, so ThreadSanitizer reports races between its threads.
/// Its tests are skipped there. Our part of it (control_mesh_test) and ranks as threads are fully
/// checked.
#ifdef __SANITIZE_THREAD__
constexpr bool kStoreSkipped = true;
#else
constexpr bool kStoreSkipped = false;
#endif

using Body = std::function<void(Communicator&)>;

/// Calls `body` on one thread per rank. Returns each rank's error, or "". Each communicator lives
/// until all ranks have finished.
inline std::vector<std::string> on_ranks(Means means, int size, const Body& body,
                                         const CommunicatorOptions& options = {}) {
  if (means == Means::mpi) {
    const auto communicator = make_mpi_communicator(options);
    return std::vector<std::string>(static_cast<std::size_t>(size),
                                    error_of([&] { body(*communicator); }));
  }
  std::vector<std::unique_ptr<Communicator>> communicators(static_cast<std::size_t>(size));
  if (means == Means::threads)
    communicators = make_thread_communicators(size, options);
  if (means == Means::shared_threads) {
    const auto segment = SharedSegment::of_threads(size);
    for (int rank = 0; rank < size; ++rank)
      communicators[static_cast<std::size_t>(rank)] = std::make_unique<BackendCommunicator>(
          c10::make_intrusive<SharedMemoryBackend>(rank, segment, options.timeout), at::kCPU);
  }
  const bool hosts =
      means == Means::even_hosts || means == Means::uneven_hosts || means == Means::one_host;
  const auto server = hosts ? std::make_unique<RendezvousServer>("127.0.0.1") : nullptr;
  const auto threads_of_host = threads_over_store();
  const bool joins = means == Means::tcp || means == Means::shared_memory;
  const int port = joins ? reserved_port() : 0;
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        const auto i = static_cast<std::size_t>(rank);
        at::set_num_threads(1);
        errors[i] = error_of([&] {
          if (means == Means::tcp)
            communicators[i] = make_tcp_communicator("127.0.0.1", port, rank, size, options);
          if (means == Means::shared_memory)
            communicators[i] =
                make_shared_memory_communicator("127.0.0.1", port, rank, size, options);
          if (hosts) {
            const bool first = means == Means::one_host
                               || (means == Means::even_hosts ? rank % 2 == 0 : rank + 1 < size);
            communicators[i] =
                hierarchical_over_store(threads_of_host, tcp_over_store(), first ? "a" : "b")(
                    connect_rendezvous("127.0.0.1", server->port(), options), rank, size, options);
          }
          body(*communicators[i]);
        });
      });
  }
  return errors;
}

/// The ranks whose results are in this process.
inline std::vector<int> ranks_here(Means means, int size) {
  if (means == Means::mpi)
    return {make_mpi_communicator()->rank()};
  std::vector<int> all;
  for (int rank = 0; rank < size; ++rank)
    all.push_back(rank);
  return all;
}

inline bool all_empty(const std::vector<std::string>& errors) {
  for (const auto& error : errors)
    if (!error.empty())
      return false;
  return true;
}

} // namespace troupe::collectives
