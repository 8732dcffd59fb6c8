// The module libtroupe_nccl.so: LibTorch's NCCL process group behind one exported table.
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "collectives/backends/nccl_module.hpp"

namespace {

int device_count() {
  return static_cast<int>(c10::cuda::device_count());
}

c10::intrusive_ptr<c10d::Backend> make(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                       int size, int device, std::int64_t timeout_ms) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::milliseconds(timeout_ms);
  auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
  group->setBoundDeviceId(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device)));
  return group;
}

} // namespace

extern "C" __attribute__((visibility("default")))
const troupe::collectives::NcclModule troupe_nccl_module{troupe::collectives::NcclModule::kVersion,
                                                         device_count, make};
