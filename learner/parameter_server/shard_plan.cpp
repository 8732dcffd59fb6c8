#include "learner/parameter_server/shard_plan.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

namespace troupe::learner {
namespace {

void sort_by_place(std::vector<Segment>& segments) {
  std::sort(segments.begin(), segments.end(), [](const Segment& a, const Segment& b) {
    return std::tie(a.parameter, a.begin) < std::tie(b.parameter, b.begin);
  });
}

/// Splits a parameter into equal pieces of at most `share` elements.
void cut(std::vector<Segment>& pieces, const ParameterSize& size, std::int64_t parameter,
         std::int64_t share) {
  const std::int64_t count = (size.elements + share - 1) / share;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = size.elements * i / count;
    pieces.push_back({.parameter = parameter,
                      .group = size.group,
                      .begin = begin,
                      .count = size.elements * (i + 1) / count - begin});
  }
}

/// Calls `copy(parameter, flat piece, segment)` for each segment in the plan's order.
template <typename Copy>
void for_each_piece(const ShardPlan& plan, const at::Tensor& flat, const Copy& copy) {
  std::int64_t begin = 0;
  for (const auto& segments : plan)
    for (const Segment& segment : segments) {
      copy(static_cast<std::size_t>(segment.parameter), flat.narrow(0, begin, segment.count),
           segment);
      begin += segment.count;
    }
}

} // namespace

ShardPlan plan_shards(const std::vector<ParameterSize>& parameters, int shards) {
  std::int64_t total = 0;
  for (const ParameterSize& size : parameters)
    total += size.elements;
  if (shards < 1 || total < shards)
    throw std::invalid_argument(std::to_string(total) + " elements of parameters over "
                                + std::to_string(shards)
                                + " shards; there must be at least one shard, and an element for "
                                  "each. Use fewer shards");
  std::vector<Segment> pieces;
  // The share is rounded up, unless that leaves fewer pieces than shards.
  for (std::int64_t share = (total + shards - 1) / shards;
       pieces.size() < static_cast<std::size_t>(shards); --share) {
    pieces.clear();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      cut(pieces, parameters[i], static_cast<std::int64_t>(i), share);
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Segment& a, const Segment& b) { return a.count > b.count; });
  ShardPlan plan(static_cast<std::size_t>(shards));
  std::vector<std::int64_t> loads(plan.size());
  for (const Segment& piece : pieces) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += piece.count;
    plan[static_cast<std::size_t>(least - loads.begin())].push_back(piece);
  }
  for (auto& segments : plan)
    sort_by_place(segments);
  return plan;
}

std::int64_t elements_of(const std::vector<Segment>& segments) {
  std::int64_t sum = 0;
  for (const Segment& segment : segments)
    sum += segment.count;
  return sum;
}

FlatParameters::FlatParameters(std::vector<at::Tensor> parameters, ShardPlan plan)
    : parameters_(std::move(parameters)), plan_(std::move(plan)) {
  for (const at::Tensor& parameter : parameters_)
    if (const auto type = parameter.scalar_type();
        type != parameters_.front().scalar_type()
        || (type != at::kFloat && type != at::kDouble && type != at::kBFloat16))
      throw std::invalid_argument("parameters on a parameter server are all float32, all float64 "
                                  "or all bfloat16; the first "
                                  "is "
                                  + c10::str(parameters_.front().scalar_type()) + ", another "
                                  + c10::str(type) + ". Wrap an optimizer for each type");
  for (const auto& segments : plan_)
    elements_ += elements_of(segments);
}

at::Tensor FlatParameters::make_flat() const {
  return at::empty({elements_}, at::TensorOptions(parameters_.front().scalar_type()));
}

void FlatParameters::read(at::Tensor& flat) const {
  const at::NoGradGuard guard;
  for_each_piece(plan_, flat, [&](std::size_t i, at::Tensor piece, const Segment& segment) {
    piece.copy_(parameters_[i].reshape({-1}).narrow(0, segment.begin, segment.count));
  });
}

void FlatParameters::write(const at::Tensor& flat) const {
  const at::NoGradGuard guard;
  for_each_piece(plan_, flat, [&](std::size_t i, const at::Tensor& piece, const Segment& segment) {
    const at::Tensor& parameter = parameters_[i];
    if (segment.count == parameter.numel())
      parameter.copy_(piece.view(parameter.sizes())); // keeps the parameter's layout
    else if (parameter.is_contiguous())
      parameter.view({-1}).narrow(0, segment.begin, segment.count).copy_(piece);
    else { // a part, in row-major order, of a parameter with another layout
      auto whole = parameter.contiguous();
      whole.view({-1}).narrow(0, segment.begin, segment.count).copy_(piece);
      parameter.copy_(whole);
    }
  });
}

std::vector<bool> FlatParameters::read_gradients(at::Tensor& flat) const {
  const at::NoGradGuard guard;
  std::vector<bool> present(parameters_.size());
  for_each_piece(plan_, flat, [&](std::size_t i, at::Tensor piece, const Segment& segment) {
    const at::Tensor& gradient = parameters_[i].grad();
    present[i] = gradient.defined();
    if (present[i])
      piece.copy_(gradient.reshape({-1}).narrow(0, segment.begin, segment.count));
    else
      piece.zero_();
  });
  return present;
}

} // namespace troupe::learner
