// The module libtroupe_cuda_graph.so: LibTorch's CUDA graphs, exported as one table.
#include <memory>

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "learner/device/cuda_graph_module.hpp"

namespace {

int device_count() {
  return static_cast<int>(c10::cuda::device_count());
}

void* capture(int device, const std::function<void()>& body) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  c10::cuda::device_synchronize();               // the inputs may depend on work in another stream
  c10::cuda::CUDACachingAllocator::emptyCache(); // the graph has separate memory
  auto graph = std::make_unique<at::cuda::CUDAGraph>();
  const auto stream = c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(device));
  const c10::cuda::CUDAStreamGuard on(stream);
  // Restricted to this thread: others may pin memory meanwhile.
  graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    body();
  } catch (...) {
    try {
      graph->capture_end();
    } catch (...) { // keep the first cause
    }
    throw;
  }
  graph->capture_end();
  return graph.release();
}

void replay(void* graph) {
  static_cast<at::cuda::CUDAGraph*>(graph)->replay();
}

void destroy(void* graph) {
  delete static_cast<at::cuda::CUDAGraph*>(graph);
}

} // namespace

extern "C" __attribute__((visibility("default")))
const troupe::learner::CudaGraphModule troupe_cuda_graph_module{
    troupe::learner::CudaGraphModule::kVersion, device_count, capture, replay, destroy};
