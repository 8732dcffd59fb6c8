#pragma once

#include <cstddef>

namespace troupe::learner {

/// From now on, caches the memory of freed large CPU tensors (from 1 MiB) for later tensors of
/// about the same size, in huge pages if available. A training step allocates the same hundreds of
/// megabytes as the step before, and the system would clear each of their pages again. Memory in
/// use plus cached memory never exceeds the peak use. Applies to the whole process, like LibTorch's
/// allocator, but not to existing tensors. Any thread may call it, also repeatedly.
void keep_tensor_memory();

struct CpuCacheStatistics { // bytes
  std::size_t in_use = 0;
  std::size_t kept = 0;
  std::size_t most = 0; // peak of the memory in use
};
CpuCacheStatistics cpu_cache_statistics();

} // namespace troupe::learner
