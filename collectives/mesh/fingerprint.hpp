#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "collectives/communicator.hpp"

namespace troupe::collectives {

enum class Kind : std::uint8_t {
  all_reduce,
  all_gather,
  broadcast,
  reduce_scatter,
  all_to_all,
  barrier
};

/// Describes the call that a rank is about to make. It is sent as its 80 bytes in memory
/// (little-endian). The collective starts only if the fingerprints are equal on all ranks.
struct Fingerprint {
  static constexpr std::uint8_t kNoOp = 255;
  static constexpr std::int8_t kNoType = -1;
  static constexpr std::int32_t kNoRoot = -1;
  static constexpr std::size_t kDimensions = 8; // further dimensions are folded into the last
  static constexpr std::uint8_t kNoShape = 255; // all_to_all with uneven splits

  std::uint64_t sequence = 0; // number of this rank's call, from 0
  Kind kind = Kind::barrier;
  std::uint8_t op = kNoOp;     // ReduceOp
  std::int8_t type = kNoType;  // c10::ScalarType
  std::uint8_t dimensions = 0; // number of dimensions, or kNoShape
  std::int32_t root = kNoRoot;
  std::array<std::int64_t, kDimensions> shape{};

  bool operator==(const Fingerprint&) const = default;
};
static_assert(sizeof(Fingerprint) == 80);

/// Makes a fingerprint without its sequence number, which the backend counts.
Fingerprint fingerprint_of(Kind kind, const at::Tensor& tensor, int op = Fingerprint::kNoOp,
                           int root = Fingerprint::kNoRoot);

/// Returns e.g. "sum float32 [3, 4]", "root 1 float32 []", or "" for a barrier; with_kind adds the
/// kind, as in "all_reduce sum …". Safe on untrusted bytes.
std::string describe(const Fingerprint& fingerprint, bool with_kind);

/// Returns e.g. "all_reduce #17".
std::string call_name(const Fingerprint& fingerprint);

/// Returns an empty string if all fingerprints, [rank], are equal. Otherwise says what each rank
/// called: "all_reduce #17: rank 0 sum float32 [3, 4], rank 1 mean float32 [3]; …".
std::string describe_mismatch(std::span<const Fingerprint> fingerprints);

/// Returns e.g. "all_reduce #17: rank 1 did not arrive within 0.1 s to what rank 0 all_reduce sum
/// float32 [3] called; …".
/// arrived[rank] says whether fingerprints[rank] is valid.
std::string describe_late(std::span<const Fingerprint> fingerprints, std::span<const char> arrived,
                          std::chrono::milliseconds timeout);

/// Returns e.g. "all_to_all: rank 0 sends 8 bytes to rank 1, which expects 4; …".
std::string describe_splits(int from, int to, std::size_t sent, std::size_t taken);

const char* op_name(ReduceOp op);
std::string rank_name(int rank);             // "rank 3"
std::string type_name(c10::ScalarType type); // "float32"

} // namespace troupe::collectives
