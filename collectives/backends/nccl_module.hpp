#pragma once

#include <cstdint>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace troupe::collectives {

/// The table that libtroupe_nccl.so exports as "troupe_nccl_module". NCCL is in a separate module
/// so that programs also start on machines without the CUDA libraries.
struct NcclModule {
  static constexpr std::int32_t kVersion = 1;

  std::int32_t version = kVersion;
  int (*device_count)() = nullptr;
  /// Propagates LibTorch's exceptions.
  c10::intrusive_ptr<c10d::Backend> (*make)(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size, int device,
                                            std::int64_t timeout_ms) = nullptr;
};

} // namespace troupe::collectives
