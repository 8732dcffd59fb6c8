#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <c10/core/ScalarType.h>

#include "collectives/communicator.hpp"

namespace troupe::collectives {

/// A separate group of all processes that mpirun started. It runs one collective at a time: the
/// caller starts it, then tests done() until it is complete. Throws std::runtime_error with MPI's
/// message. Calls from several threads must not overlap.
class MpiGroup {
public:
  virtual ~MpiGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Each call takes at most 2^31 - 1 elements or bytes. `in` may equal `out` in all_reduce. The
  /// mean, float16 and bfloat16 are not supported. Min and max propagate NaN.
  virtual void all_reduce(const void* in, void* out, std::size_t count, c10::ScalarType type,
                          ReduceOp op) = 0;
  virtual void reduce_scatter(const void* in, void* out, std::size_t count_per_rank,
                              c10::ScalarType type, ReduceOp op) = 0;
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  virtual void all_gather(const void* in, void* out, std::size_t bytes_per_rank) = 0;
  virtual void all_to_all(const void* in, std::span<const std::size_t> in_bytes, void* out,
                          std::span<const std::size_t> out_bytes) = 0;
  virtual bool done() = 0;

  /// Gives up on a collective that will not complete. MPI cannot cancel it and may still write into
  /// its memory, so `memory` is kept until the process ends, and the process then ends without
  /// MPI_Finalize.
  virtual void abandon(std::shared_ptr<void> memory) = 0;
};

/// The table that libtroupe_mpi.so exports as "troupe_mpi_module". MPI is in a separate module so
/// that programs also start on machines without it.
struct MpiModule {
  static constexpr std::int32_t kVersion = 1;

  std::int32_t version = kVersion;
  /// Makes the group. All processes must call it; the group is ready once done() returns true.
  /// Unless the program has initialized MPI, this function does so and finalizes MPI at exit. MPI's
  /// initialization has no deadline; mpirun watches over it. Throws std::runtime_error if MPI
  /// provides less than MPI_THREAD_SERIALIZED or has been finalized.
  std::unique_ptr<MpiGroup> (*make)() = nullptr;
};

} // namespace troupe::collectives
