#pragma once

#include <cstdint>
#include <functional>

namespace troupe::learner {

/// The export "troupe_cuda_graph_module" of libtroupe_cuda_graph.so. It is a separate module, so
/// that programs start on machines without the CUDA libraries. Throws LibTorch's exceptions.
struct CudaGraphModule {
  static constexpr std::int32_t kVersion = 1;

  std::int32_t version = kVersion;
  int (*device_count)() = nullptr;
  void* (*capture)(int device, const std::function<void()>& body) = nullptr;
  void (*replay)(void* graph) = nullptr;
  void (*destroy)(void* graph) = nullptr;
};

} // namespace troupe::learner
