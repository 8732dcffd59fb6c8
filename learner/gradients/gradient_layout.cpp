// The layout of parameters in buckets, and the hooks that report their gradients.
#include <numeric>

#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/variable.h>

#include "collectives/communicator.hpp"
#include "learner/gradients/gradient_bucket.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kFirstBucketBytes = 1 << 20;

bool same_bucket(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

} // namespace

GradientBuckets::GradientBuckets(const std::vector<at::Tensor>& parameters,
                                 collectives::Communicator& communicator,
                                 const GradientBucketsOptions& options)
    : parameters_(parameters),
      communicator_(communicator),
      options_(options),
      order_(parameters.size()),
      hooks_(std::make_shared<Hooks>(this, options.timeline)),
      fires_(parameters.size(), 0),
      // Adaptive sums are not additive, so a late gradient could not be added afterwards.
      overlap_(options.overlap && options.operation != GradientOperation::adasum) {
  check_compression(options_.compression, options_.operation);
  std::iota(order_.rbegin(), order_.rend(), std::size_t{0}); // backward probably takes this order
  ready_.reserve(parameters_.size());
  lay_out();
  if (!overlap_)
    return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].requires_grad() || !parameters_[i].is_leaf())
      continue;
    auto node = torch::autograd::impl::grad_accumulator(parameters_[i]);
    const auto key = node->add_post_hook(std::make_unique<Hooks::Hook>(hooks_, i));
    hooks_->nodes.emplace_back(std::move(node), key);
  }
}

GradientBuckets::~GradientBuckets() {
  {
    const std::lock_guard lock(hooks_->mutex);
    hooks_->timeline = nullptr;
  }
  for (auto& [node, key] : hooks_->nodes)
    node->del_post_hook(key);
  hooks_->nodes.clear();
}

void GradientBuckets::lay_out() {
  buckets_.clear();
  places_.assign(parameters_.size(), {});
  std::size_t first = 0;
  std::int64_t limit = std::min(kFirstBucketBytes, options_.bucket_bytes);
  while (first < order_.size()) {
    std::int64_t elements = 0;
    std::vector<std::size_t> members;
    const auto& like = parameters_[order_[first]];
    while (first < order_.size() && same_bucket(parameters_[order_[first]], like)
           && (members.empty()
               || (elements + parameters_[order_[first]].numel()) * like.element_size() <= limit)) {
      elements += parameters_[order_[first]].numel();
      members.push_back(order_[first++]);
    }
    close_bucket(std::move(members), elements);
    limit = std::min(4 * limit, options_.bucket_bytes);
  }
  next_ = 0;
}

void GradientBuckets::close_bucket(std::vector<std::size_t> members, std::int64_t elements) {
  Bucket bucket;
  bucket.layout = {members.size(), static_cast<std::size_t>(communicator_.size())};
  bucket.finite.assign(members.size(), kNotTaken);
  auto& memory = bucket.memory;
  const auto tail = static_cast<std::int64_t>(bucket.layout.size());
  memory.flat =
      at::zeros({elements + tail}, parameters_[members[0]].options().requires_grad(false));
  memory.data = memory.flat.narrow(0, 0, elements);
  memory.tail = memory.flat.narrow(0, elements, tail);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& parameter = parameters_[members[i]];
    const auto view = memory.flat.narrow(0, begin, parameter.numel());
    // In the parameter's own layout (e.g. channels last), so that the update needs no conversion.
    memory.views.push_back(parameter.is_non_overlapping_and_dense()
                               ? view.as_strided(parameter.sizes(), parameter.strides())
                               : view.view(parameter.sizes()));
    begin += parameter.numel();
    places_[members[i]] = {buckets_.size(), i};
  }
  bucket.members = std::move(members);
  bucket.reduction =
      make_bucket_reduction(memory, communicator_, options_.operation, options_.compression);
  buckets_.push_back(std::move(bucket));
}

} // namespace troupe::learner
