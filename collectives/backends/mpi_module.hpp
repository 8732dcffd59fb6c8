#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <c10/core/ScalarType.h>

#include "collectives/communicator.hpp"

namespace troupe::collectives {

/// All processes that mpirun started, as a group of its own. One collective at a time: it is
/// started, then tested until it is complete. Throws std::runtime_error with MPI's text. Calls of
/// several threads must not overlap.
class MpiGroup {
public:
  virtual ~MpiGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// At most 2^31 - 1 elements or bytes a call. `in` may be `out` in all_reduce. No mean; no
  /// float16 or bfloat16. Min and max hand a NaN on.
  virtual void all_reduce(const void* in, void* out, std::size_t count, c10::ScalarType type,
                          ReduceOp op) = 0;
  virtual void reduce_scatter(const void* in, void* out, std::size_t count_per_rank,
                              c10::ScalarType type, ReduceOp op) = 0;
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  virtual void all_gather(const void* in, void* out, std::size_t bytes_per_rank) = 0;
  virtual void all_to_all(const void* in, std::span<const std::size_t> in_bytes, void* out,
                          std::span<const std::size_t> out_bytes) = 0;
  virtual bool done() = 0;

  /// The collective will not end. MPI cannot take it back and may still write into its memory, so
  /// `memory` is kept until the process ends, which it then does without MPI_Finalize.
  virtual void abandon(std::shared_ptr<void> memory) = 0;
};

/// What libtroupe_mpi.so exports under the name "troupe_mpi_module". It is a module of its own, so
/// that programs start on machines without MPI.
struct MpiModule {
  static constexpr std::int32_t kVersion = 1;

  std::int32_t version = kVersion;
  /// Starts MPI unless the program has; it is finalised at exit. Collective over all processes: the
  /// group is ready when done() says so. MPI's own start has no deadline; mpirun watches over it.
  /// Throws std::runtime_error where MPI gives less than MPI_THREAD_SERIALIZED or is over.
  std::unique_ptr<MpiGroup> (*make)() = nullptr;
};

} // namespace troupe::collectives
