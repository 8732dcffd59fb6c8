#pragma once

#include <cstddef>

namespace troupe::learner {

/// From now on caches the memory of freed large CPU tensors (from 1 MiB) for later ones of about
/// the same size, in huge pages if available. A training step allocates the same hundreds of
/// megabytes as the one before, and the system would clear each of their pages again. Memory in use
/// and cached never exceeds the most that was in use at one time. Applies to the whole process,
/// like LibTorch's allocator, but not to existing tensors. Any thread; may be called again.
void keep_tensor_memory();

struct CpuCacheStatistics { // bytes
  std::size_t in_use = 0;
  std::size_t kept = 0;
  std::size_t most = 0; // in use at one time
};
CpuCacheStatistics cpu_cache_statistics();

} // namespace troupe::learner
