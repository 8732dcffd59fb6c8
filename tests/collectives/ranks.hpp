#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>

#include "collectives/backend_communicator.hpp"
#include "collectives/shared_memory_backend.hpp"

namespace troupe::collectives {

/// shared_memory: each rank maps the memory for itself, as processes do; shared_threads: the ranks
/// use one mapping, which ThreadSanitizer can follow.
enum class Means { threads, gloo, shared_memory, shared_threads };

/// LibTorch's Gloo is not instrumented: ThreadSanitizer takes its I/O threads for racing. Skipped
/// there; what is ours of it (control_mesh_test) and ranks as threads are checked in full.
#ifdef __SANITIZE_THREAD__
constexpr bool kGlooSkipped = true;
#else
constexpr bool kGlooSkipped = false;
#endif

using Body = std::function<void(Communicator&)>;

/// Calls `body` on one thread per rank and returns what each threw, "" where nothing. A rank's
/// communicator lives until all have ended.
inline std::vector<std::string> on_ranks(Means means, int size, const Body& body,
                                         const CommunicatorOptions& options = {}) {
  std::vector<std::unique_ptr<Communicator>> communicators(static_cast<std::size_t>(size));
  if (means == Means::threads)
    communicators = make_thread_communicators(size, options);
  if (means == Means::shared_threads) {
    const auto segment = SharedSegment::of_threads(size);
    for (int rank = 0; rank < size; ++rank)
      communicators[static_cast<std::size_t>(rank)] = std::make_unique<BackendCommunicator>(
          c10::make_intrusive<SharedMemoryBackend>(rank, segment, options.timeout), at::kCPU);
  }
  const bool joins = means == Means::gloo || means == Means::shared_memory;
  const int port = joins ? free_port() : 0;
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        const auto i = static_cast<std::size_t>(rank);
        at::set_num_threads(1);
        try {
          if (means == Means::gloo)
            communicators[i] = make_gloo_communicator("127.0.0.1", port, rank, size, options);
          if (means == Means::shared_memory)
            communicators[i] =
                make_shared_memory_communicator("127.0.0.1", port, rank, size, options);
          body(*communicators[i]);
        } catch (const std::exception& error) {
          errors[i] = error.what();
        }
      });
  }
  return errors;
}

inline bool all_empty(const std::vector<std::string>& errors) {
  for (const auto& error : errors)
    if (!error.empty())
      return false;
  return true;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace troupe::collectives
