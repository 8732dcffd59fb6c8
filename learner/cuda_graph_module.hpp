#pragma once

#include <cstdint>
#include <functional>

namespace troupe::learner {

/// What libtroupe_cuda_graph.so exports under the name "troupe_cuda_graph_module": a module of its
/// own, so that programs start on machines without the CUDA libraries. Throws what LibTorch throws.
struct CudaGraphModule {
  static constexpr std::int32_t kVersion = 1;

  std::int32_t version = kVersion;
  int (*device_count)() = nullptr;
  void* (*capture)(int device, const std::function<void()>& body) = nullptr;
  void (*replay)(void* graph) = nullptr;
  void (*destroy)(void* graph) = nullptr;
};

} // namespace troupe::learner
