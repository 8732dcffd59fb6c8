#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// A run of consecutive elements of one parameter.
struct Segment {
  std::int64_t parameter = 0; // index among all of the optimizer's parameters
  std::int64_t group = 0;     // index of its param group
  std::int64_t begin = 0;     // first element
  std::int64_t count = 0;     // number of elements
  bool operator==(const Segment&) const = default;
};

struct ParameterSize {
  std::int64_t elements = 0;
  std::int64_t group = 0;
};

/// The segments that each shard holds, [shard], sorted.
using ShardPlan = std::vector<std::vector<Segment>>;

/// Distributes parameters over `shards` by size. It splits parameters larger than a shard's share,
/// then assigns each piece, largest first, to the shard with the fewest elements. Equal sizes give
/// equal plans. A single parameter is split into equal pieces, one per shard. Throws
/// std::invalid_argument if there are fewer elements than shards.
ShardPlan plan_shards(const std::vector<ParameterSize>& parameters, int shards);

std::int64_t elements_of(const std::vector<Segment>& segments);

/// Copies between parameters and a flat tensor in the order of a plan: shard 0's segments, then
/// shard 1's, … Parameters may have any layout and device, but must all have the same type:
/// float32, float64 or bfloat16.
class FlatParameters {
public:
  /// Throws std::invalid_argument if the types differ or are not supported.
  FlatParameters(std::vector<at::Tensor> parameters, ShardPlan plan);

  /// Makes an uninitialized flat tensor on the CPU, [elements].
  at::Tensor make_flat() const;
  const ShardPlan& plan() const { return plan_; }

  void read(at::Tensor& flat) const;        // parameters -> flat
  void write(const at::Tensor& flat) const; // flat -> parameters
  /// Copies gradients -> flat, with zeros where there is none. Returns [parameter], whether it has
  /// a gradient.
  std::vector<bool> read_gradients(at::Tensor& flat) const;

private:
  std::vector<at::Tensor> parameters_;
  ShardPlan plan_;
  std::int64_t elements_ = 0; // in all shards
};

} // namespace troupe::learner
