#include "collectives/mesh/fingerprint.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>

#include <c10/core/ScalarType.h>

namespace troupe::collectives {
namespace {

static_assert(std::endian::native == std::endian::little,
              "fingerprints travel in their memory layout");

const char* kind_name(Kind kind) {
  switch (kind) {
  case Kind::all_reduce:
    return "all_reduce";
  case Kind::all_gather:
    return "all_gather";
  case Kind::broadcast:
    return "broadcast";
  case Kind::reduce_scatter:
    return "reduce_scatter";
  case Kind::all_to_all:
    return "all_to_all";
  case Kind::barrier:
    return "barrier";
  }
  return "an unknown collective";
}

std::string shape_name(const Fingerprint& fingerprint) {
  if (fingerprint.dimensions == Fingerprint::kNoShape)
    return "uneven splits";
  std::string text = "[";
  const auto shown = std::min<std::size_t>(fingerprint.dimensions, Fingerprint::kDimensions);
  for (std::size_t i = 0; i < shown; ++i)
    text += (i ? ", " : "") + std::to_string(fingerprint.shape[i]);
  return text + "]";
}

std::string rank_list(const std::vector<std::size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

/// Groups the ranks by equal calls, in the order of their first ranks.
std::vector<std::vector<std::size_t>> groups(std::span<const Fingerprint> fingerprints,
                                             std::span<const char> arrived) {
  std::vector<std::vector<std::size_t>> result;
  for (std::size_t rank = 0; rank < fingerprints.size(); ++rank) {
    if (!arrived.empty() && !arrived[rank])
      continue;
    const auto same = std::find_if(result.begin(), result.end(), [&](const auto& group) {
      return fingerprints[group.front()] == fingerprints[rank];
    });
    if (same != result.end())
      same->push_back(rank);
    else
      result.push_back({rank});
  }
  return result;
}

std::string list_calls(std::span<const Fingerprint> fingerprints,
                       const std::vector<std::vector<std::size_t>>& ranks, bool with_kind) {
  std::string text;
  for (const auto& group : ranks) {
    const auto call = describe(fingerprints[group.front()], with_kind);
    text += (text.empty() ? "" : ", ") + rank_list(group) + (call.empty() ? "" : " ") + call;
  }
  return text;
}

} // namespace

const char* op_name(ReduceOp op) {
  switch (op) {
  case ReduceOp::sum:
    return "sum";
  case ReduceOp::mean:
    return "mean";
  case ReduceOp::min:
    return "min";
  case ReduceOp::max:
    return "max";
  case ReduceOp::product:
    return "product";
  case ReduceOp::first:
    return "first";
  }
  return "an unknown operation";
}

std::string rank_name(int rank) {
  return "rank " + std::to_string(rank);
}

std::string type_name(c10::ScalarType type) {
  switch (type) {
  case at::kFloat:
    return "float32";
  case at::kDouble:
    return "float64";
  case at::kHalf:
    return "float16";
  case at::kBFloat16:
    return "bfloat16";
  case at::kLong:
    return "int64";
  case at::kInt:
    return "int32";
  case at::kShort:
    return "int16";
  case at::kChar:
    return "int8";
  case at::kByte:
    return "uint8";
  case at::kBool:
    return "bool";
  default:
    return "type " + std::to_string(static_cast<int>(type));
  }
}

Fingerprint fingerprint_of(Kind kind, const at::Tensor& tensor, int op, int root) {
  Fingerprint result;
  result.kind = kind;
  result.op = static_cast<std::uint8_t>(op);
  result.root = root;
  if (!tensor.defined())
    return result;
  result.type = static_cast<std::int8_t>(tensor.scalar_type());
  const auto sizes = tensor.sizes();
  result.dimensions = static_cast<std::uint8_t>(std::min<std::size_t>(sizes.size(), 254));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i < Fingerprint::kDimensions)
      result.shape[i] = sizes[i];
    else
      result.shape.back() = result.shape.back() * 1'000'003 + sizes[i];
  }
  return result;
}

std::string describe(const Fingerprint& fingerprint, bool with_kind) {
  std::string text = with_kind ? kind_name(fingerprint.kind) : "";
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  if (fingerprint.op != Fingerprint::kNoOp)
    add(op_name(static_cast<ReduceOp>(fingerprint.op)));
  if (fingerprint.root != Fingerprint::kNoRoot)
    add("root " + std::to_string(fingerprint.root));
  if (fingerprint.type != Fingerprint::kNoType) {
    add(type_name(static_cast<c10::ScalarType>(fingerprint.type)));
    add(shape_name(fingerprint));
  }
  return text;
}

std::string call_name(const Fingerprint& fingerprint) {
  return std::string(kind_name(fingerprint.kind)) + " #" + std::to_string(fingerprint.sequence);
}

std::string describe_mismatch(std::span<const Fingerprint> fingerprints) {
  const auto& first = fingerprints.front();
  if (std::all_of(fingerprints.begin(), fingerprints.end(),
                  [&](const Fingerprint& other) { return other == first; }))
    return {};
  const bool same_call =
      std::all_of(fingerprints.begin(), fingerprints.end(), [&](const Fingerprint& other) {
        return other.kind == first.kind && other.sequence == first.sequence;
      });
  return (same_call ? call_name(first) : "collective #" + std::to_string(first.sequence)) + ": "
         + list_calls(fingerprints, groups(fingerprints, {}), !same_call)
         + "; every rank must call the same collectives in the same order, with equal shape, type, "
           "operation and root";
}

std::string describe_late(std::span<const Fingerprint> fingerprints, std::span<const char> arrived,
                          std::chrono::milliseconds timeout) {
  std::vector<std::size_t> late;
  for (std::size_t rank = 0; rank < arrived.size(); ++rank)
    if (!arrived[rank])
      late.push_back(rank);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", static_cast<double>(timeout.count()) / 1000);
  const auto here = groups(fingerprints, arrived);
  return (here.empty() ? "collective" : call_name(fingerprints[here.front().front()])) + ": "
         + rank_list(late) + " did not arrive within " + seconds + " s to what "
         + list_calls(fingerprints, here, true)
         + " called; look for an error on that rank, or give the communicator a longer timeout";
}

std::string describe_splits(int from, int to, std::size_t sent, std::size_t taken) {
  return "all_to_all: rank " + std::to_string(from) + " sends " + std::to_string(sent)
         + " bytes to rank " + std::to_string(to) + ", which expects " + std::to_string(taken)
         + "; make them equal";
}

} // namespace troupe::collectives
