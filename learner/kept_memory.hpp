#pragma once

#include <cstddef>

namespace troupe::learner {

/// From now on large tensors of this process on the CPU (from 1 MiB) get memory that is kept when
/// they are freed, for the next one of about the same size, in huge pages where the system has
/// them. A training step asks for the same hundreds of megabytes as the one before, and the system
/// would clear each of their pages anew. In use and kept together are never more than were in use
/// at one time. Of the process, as LibTorch's allocator is; tensors that are there already stay as
/// they are. Any thread, once or more often.
void keep_tensor_memory();

struct KeptMemory { // bytes
  std::size_t in_use = 0;
  std::size_t kept = 0;
  std::size_t most = 0; // in use at one time
};
KeptMemory kept_memory();

} // namespace troupe::learner
