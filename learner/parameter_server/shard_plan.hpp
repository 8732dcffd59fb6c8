#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// A run of consecutive elements of one parameter.
struct Segment {
  std::int64_t parameter = 0; // among all of the optimizer
  std::int64_t group = 0;     // param group it is in
  std::int64_t begin = 0;     // element
  std::int64_t count = 0;     // elements
  bool operator==(const Segment&) const = default;
};

struct ParameterSize {
  std::int64_t elements = 0;
  std::int64_t group = 0;
};

/// [shard] which segments it holds, sorted.
using ShardPlan = std::vector<std::vector<Segment>>;

/// Distributes parameters over `shards` by size: cuts parameters larger than a shard's share, then
/// assigns each piece, the largest first, to the shard with the least. Equal sizes give equal
/// plans. A single parameter is cut into one equal piece per shard. Throws std::invalid_argument if
/// there are fewer elements than shards.
ShardPlan plan_shards(const std::vector<ParameterSize>& parameters, int shards);

std::int64_t elements_of(const std::vector<Segment>& segments);

/// Copies between parameters and a flat tensor in the order of a plan: shard 0's segments, then
/// shard 1's, … Parameters may have any layout and device, but all of one of float32, float64 and
/// bfloat16.
class FlatParameters {
public:
  /// Throws std::invalid_argument when the types differ or are others.
  FlatParameters(std::vector<at::Tensor> parameters, ShardPlan plan);

  /// Empty flat tensor on the CPU, [elements].
  at::Tensor make_flat() const;
  const ShardPlan& plan() const { return plan_; }
  /// [shard] elements before it, and at the end all.
  const std::vector<std::int64_t>& offsets() const { return offsets_; }

  void read(at::Tensor& flat) const;        // parameters -> flat
  void write(const at::Tensor& flat) const; // flat -> parameters
  /// Gradients -> flat, zeros where there is none; [parameter] whether it has one.
  std::vector<bool> read_gradients(at::Tensor& flat) const;

private:
  std::vector<at::Tensor> parameters_;
  ShardPlan plan_;
  std::vector<std::int64_t> offsets_;
};

} // namespace troupe::learner
