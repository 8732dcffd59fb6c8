#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <cstdlib>

#include "collectives/backends/backend_communicator.hpp"
#include "collectives/backends/checked_backend.hpp"
#include "collectives/backends/module_file.hpp"
#include "collectives/backends/nccl_module.hpp"
#include "collectives/mesh/group_key.hpp"
#include "collectives/rendezvous/over_store.hpp"

namespace troupe::collectives {
namespace {

/// LibTorch's flight recorder keeps every collective of every group in one table, and adds a group
/// to it without holding its lock, so creating groups on two threads sometimes crashes. The
/// recorder reads its size on first use, so it is set before main(), while there is only one
/// thread. 0 turns the recorder off; a value set by the user is kept.
[[maybe_unused]] const int kNoFlightRecorder = setenv("TORCH_FR_BUFFER_SIZE", "0", 0);

#ifdef TROUPE_NCCL_MODULE
constexpr const char* kWithoutNccl = "";
#else
constexpr const char* kWithoutNccl =
    "this build has no NCCL: no CUDA toolkit with nccl.h was found at configure time; install one "
    "and configure with -DTROUPE_CUDA=ON";
#endif

ModuleFile<NcclModule> load_nccl_module() {
  auto loaded = load_module<NcclModule>("troupe_nccl", kWithoutNccl);
  if (loaded.module && loaded.module->device_count() < 1)
    return {nullptr, "no CUDA device is visible; see nvidia-smi and CUDA_VISIBLE_DEVICES"};
  return loaded;
}

} // namespace

std::string nccl_unavailable_reason() {
  return load_nccl_module().reason;
}

int cuda_device_count() {
  const auto loaded = load_nccl_module();
  return loaded.module ? loaded.module->device_count() : 0;
}

StoreFactory nccl_over_store(int device, const std::string& interface_host) {
  const auto loaded = load_nccl_module();
  if (!loaded.module)
    throw std::runtime_error("NCCL cannot be used: " + loaded.reason);
  if (device < 0 || device >= loaded.module->device_count())
    throw std::invalid_argument("device " + std::to_string(device) + " must be in [0, "
                                + std::to_string(loaded.module->device_count())
                                + "), the visible CUDA devices");
  return [module = loaded.module, device,
          interface_host](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                          const CommunicatorOptions& options) -> std::unique_ptr<Communicator> {
    if (size > 1)
      require_trusted_network(options.trust, interface_host, "NCCL");
    const auto mesh = std::make_shared<ControlMesh>(*store, rank, size, options, interface_host);
    auto inner = module->make(c10::make_intrusive<c10d::PrefixStore>("nccl", store), rank, size,
                              device, options.timeout.count());
    return std::make_unique<BackendCommunicator>(
        c10::make_intrusive<CheckedBackend>(std::move(inner), mesh, at::kCUDA),
        at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device)));
  };
}

} // namespace troupe::collectives
