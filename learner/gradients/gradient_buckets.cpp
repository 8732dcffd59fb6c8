#include "learner/gradients/gradient_buckets.hpp"

#include <algorithm>

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "collectives/communicator.hpp"
#include "learner/device/checked_copy.hpp"
#include "learner/gradients/gradient_bucket.hpp"
#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {

using collectives::Timeline;

namespace {

bool is_view(const at::Tensor& gradient, const at::Tensor& view) {
  return gradient.defined() && !gradient.is_sparse() && gradient.data_ptr() == view.data_ptr()
         && gradient.strides() == view.strides();
}

std::vector<double> to_doubles(const at::Tensor& tail) {
  const auto values = tail.to(at::kCPU, at::kDouble).contiguous();
  const auto* begin = values.const_data_ptr<double>();
  return {begin, begin + values.numel()};
}

} // namespace

void GradientBuckets::broadcast_parameters() {
  const at::NoGradGuard guard;
  for (auto& bucket : buckets_) {
    auto& memory = bucket.memory;
    for (std::size_t i = 0; i < bucket.members.size(); ++i)
      memory.views[i].copy_(parameters_[bucket.members[i]]);
    communicator_.broadcast(memory.flat, 0);
    for (std::size_t i = 0; i < bucket.members.size(); ++i)
      parameters_[bucket.members[i]].copy_(memory.views[i]);
  }
}

void GradientBuckets::arm(double scale) {
  const std::lock_guard lock(mutex_);
  scale_ = scale;
  if (!overlap_ || expected_.empty() || armed_)
    return;
  armed_ = true;
  for (auto& bucket : buckets_) {
    bucket.pending = 0;
    for (const auto member : bucket.members)
      bucket.pending += fires_[member] < expected_[member];
  }
}

void GradientBuckets::next_micro_batch() {
  const std::lock_guard lock(mutex_);
  std::fill(fires_.begin(), fires_.end(), 0);
  ready_.clear();
}

void GradientBuckets::clear() {
  const bool computed = std::any_of(fires_.begin(), fires_.end(), [](int n) { return n > 0; });
  wasted_ = wasted_ || (computed && expected_.empty());
  if (next_ > 0) { // the gradients were for another optimizer: finish and discard them
    const at::NoGradGuard no_gradient;
    launch_rest(false);
    for (auto& bucket : buckets_)
      finish(bucket);
    next_ = 0;
  }
  for (auto& bucket : buckets_)
    std::fill(bucket.finite.begin(), bucket.finite.end(), kNotTaken);
  armed_ = false;
  for (auto& parameter : parameters_)
    parameter.mutable_grad().reset();
  next_micro_batch();
}

/// Moves a gradient into its bucket unless it is already there.
void GradientBuckets::take_in(std::size_t parameter) {
  const auto [index, member] = places_[parameter];
  auto& bucket = buckets_[index];
  auto& gradient = parameters_[parameter].mutable_grad();
  auto& view = bucket.memory.views[member];
  bucket.finite[member] = is_view(gradient, view) ? all_finite(view, FiniteCheck::on_cpu)
                                                  : checked_copy(gradient, view);
  gradient = view;
}

/// Called when autograd has accumulated into the gradient of a parameter.
void GradientBuckets::on_gradient(std::size_t parameter) {
  if (at::GradMode::is_enabled())
    return; // create_graph: the gradient is part of a graph; reduce() copies it
  const at::NoGradGuard no_gradient;
  const std::lock_guard lock(mutex_);
  const auto place = places_[parameter];
  auto& bucket = buckets_[place.bucket];
  ++fires_[parameter];
  if (expected_.empty())
    ready_.push_back(parameter);
  if (!armed_ || bucket.launched)
    return; // too late for this bucket; reduce() will see that the parameter has a gradient again
  bucket.finite[place.member] = kNotTaken;
  if (fires_[parameter] != expected_[parameter])
    return;
  take_in(parameter);
  --bucket.pending;
  // The last bucket waits for reduce(), because its tail reports gradients that came too late for
  // the other buckets.
  while (next_ + 1 < buckets_.size() && buckets_[next_].pending == 0)
    launch(buckets_[next_++], false, true);
  early_ = static_cast<std::int64_t>(next_);
}

void GradientBuckets::launch(Bucket& bucket, bool now, bool stepping) {
  std::vector<double> tail(bucket.layout.size(), 0.0);
  const auto rank = static_cast<std::size_t>(communicator_.rank());
  bool finite = true;
  for (std::size_t i = 0; i < bucket.members.size(); ++i) {
    const auto parameter = bucket.members[i];
    auto& gradient = parameters_[parameter].mutable_grad();
    const bool mine = stepping && gradient.defined();
    if (!mine)
      bucket.memory.views[i].zero_();
    else if (bucket.finite[i] == kNotTaken || !is_view(gradient, bucket.memory.views[i]))
      take_in(parameter); // also if another tensor has replaced it
    tail[bucket.layout.present(i)] = mine;
    tail[bucket.layout.bad(i)] = mine && bucket.finite[i] == 0;
    finite = finite && tail[bucket.layout.bad(i)] == 0;
    bucket.finite[i] = kNotTaken;
    gradient.reset();
  }
  tail[bucket.layout.bad_on(rank)] = !finite;
  tail[bucket.layout.stepping(rank)] = stepping;
  const bool last = &bucket == &buckets_.back();
  tail[bucket.layout.late()] = last && stepping && any_late();
  tail[bucket.layout.hooked()] = !ready_.empty();
  tail[bucket.layout.wasted()] = wasted_;
  bucket.memory.tail.copy_(at::tensor(tail));
  if (scale_ != 1)
    bucket.memory.data.mul_(scale_);
  if (!bucket.memory.data.is_cpu())
    look_for_bad_on_device(bucket);
  if (!finite && options_.compression.kind != CompressionKind::none)
    bucket.memory.data.zero_(); // the tail reports it; error feedback must not keep it
  bucket.launched = true;
  if (options_.timeline)
    bucket.reduction->set_on_arrival(
        [hooks = hooks_, index = static_cast<int>(&bucket - buckets_.data()),
         begin = Timeline::Clock::now()] { hooks->arrived(index, begin); });
  bucket.reduction->start(now);
}

/// Does on the device what launch() does on the host: marks gradients that are not finite. It does
/// not wait for the device.
void GradientBuckets::look_for_bad_on_device(Bucket& bucket) {
  const auto bad = at::isfinite(at::stack(at::_foreach_norm(bucket.memory.views, 2))).logical_not();
  const auto slot = [&](std::size_t first, std::size_t count) {
    return bucket.memory.tail.narrow(0, static_cast<std::int64_t>(first),
                                     static_cast<std::int64_t>(count));
  };
  slot(bucket.layout.bad(0), bucket.layout.members).copy_(bad);
  slot(bucket.layout.bad_on(static_cast<std::size_t>(communicator_.rank())), 1).copy_(bad.any());
  if (options_.compression.kind != CompressionKind::none)
    bucket.memory.data.masked_fill_(bad.any(), 0);
}

void GradientBuckets::finish(Bucket& bucket) {
  const Timeline::Span span(options_.timeline, "bucket wait",
                            static_cast<int>(&bucket - buckets_.data()));
  bucket.reduction->finish();
  bucket.launched = false;
}

/// Sends the remaining buckets. If none has been sent yet, reduces them one by one, without another
/// thread.
void GradientBuckets::launch_rest(bool stepping) {
  const bool now = next_ == 0;
  for (; next_ < buckets_.size(); ++next_) {
    auto& bucket = buckets_[next_];
    launch(bucket, now, stepping);
    if (now)
      finish(bucket);
  }
}

bool GradientBuckets::any_late() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (buckets_[places_[i].bucket].launched && parameters_[i].grad().defined())
      return true;
  return false;
}

/// Reduces the gradients of all replicas that arrived after their buckets were sent, and adds them
/// to the reduced ones.
void GradientBuckets::late_round() {
  const auto rank = static_cast<std::size_t>(communicator_.rank());
  const auto op = options_.operation == GradientOperation::sum ? collectives::ReduceOp::sum
                                                               : collectives::ReduceOp::mean;
  for (auto& bucket : buckets_) {
    auto more = at::zeros_like(bucket.memory.flat);
    std::vector<double> tail(bucket.layout.size(), 0.0);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < bucket.members.size(); ++i) {
      auto& gradient = parameters_[bucket.members[i]].mutable_grad();
      const auto& view = bucket.memory.views[i];
      if (gradient.defined()) {
        auto part = more.as_strided(view.sizes(), view.strides(), begin);
        const bool finite = checked_copy(gradient, part);
        tail[bucket.layout.present(i)] = 1;
        tail[bucket.layout.bad(i)] = !finite;
        tail[bucket.layout.bad_on(rank)] += !finite;
        gradient.reset();
      }
      begin += view.numel();
    }
    if (scale_ != 1)
      more.mul_(scale_);
    more.narrow(0, begin, bucket.memory.tail.numel()).copy_(at::tensor(tail));
    communicator_.all_reduce(more, op);
    bucket.memory.flat.add_(more);
  }
}

void GradientBuckets::read(const Bucket& bucket, GradientReport& report) const {
  const auto tail = to_doubles(bucket.memory.tail);
  for (std::size_t i = 0; i < bucket.members.size(); ++i) {
    const auto parameter = static_cast<std::int64_t>(bucket.members[i]);
    if (!(tail[bucket.layout.present(i)] > 0))
      report.with_none.push_back(parameter);
    if (!(tail[bucket.layout.bad(i)] > 0))
      continue;
    ++report.not_finite_count;
    if (report.not_finite >= 0 && report.not_finite < parameter)
      continue;
    report.not_finite = parameter;
    report.not_finite_on.clear();
    for (std::size_t replica = 0; replica < bucket.layout.replicas; ++replica)
      if (tail[bucket.layout.bad_on(replica)] > 0)
        report.not_finite_on.push_back(static_cast<int>(replica));
  }
}

GradientReport GradientBuckets::reduce(double scale, bool stepping) {
  const at::NoGradGuard no_gradient;
  const bool under_way = next_ > 0;
  if (!under_way) {
    scale_ = scale;
    early_ = 0;
  }
  launch_rest(stepping);
  if (under_way)
    for (auto& bucket : buckets_)
      finish(bucket);
  auto& last = buckets_.back();
  const auto tail = to_doubles(last.memory.tail);
  if (tail[last.layout.late()] > 0)
    late_round();
  GradientReport report;
  for (std::size_t replica = 0; replica < last.layout.replicas; ++replica)
    if (tail[last.layout.stepping(replica)] > 0)
      report.stepping.push_back(static_cast<int>(replica));
  for (auto& bucket : buckets_) {
    read(bucket, report);
    for (std::size_t i = 0; i < bucket.members.size(); ++i)
      parameters_[bucket.members[i]].mutable_grad() = bucket.memory.views[i];
  }
  for (const auto parameter : report.with_none)
    parameters_[static_cast<std::size_t>(parameter)].mutable_grad().reset();
  learn(tail[last.layout.hooked()] > 0, tail[last.layout.wasted()] > 0);
  return report;
}

/// Updates what the next step relies on. After the first step with a backward pass, the buckets are
/// sorted by when the gradients of replica 0 became ready. The values of the gradients are
/// preserved.
void GradientBuckets::learn(bool hooked, bool wasted) {
  next_ = 0;
  armed_ = false;
  wasted_ = false;
  overlap_ = overlap_ && !wasted;
  const bool first = expected_.empty();
  expected_ = fires_;
  if (first && hooked && overlap_ && !options_.keep_order) {
    std::vector<std::int64_t> rank_of(parameters_.size(), -1);
    for (std::size_t i = 0; i < ready_.size(); ++i)
      rank_of[ready_[i]] = static_cast<std::int64_t>(i); // the last accumulation counts
    auto order = at::tensor(rank_of);
    if (parameters_[0].is_cuda())
      order = order.to(parameters_[0].device());
    communicator_.broadcast(order, 0);
    const auto on_host = order.cpu();
    const auto* when = on_host.const_data_ptr<std::int64_t>();
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      // Unused parameters come last, so that no other bucket waits for them.
      return static_cast<std::uint64_t>(when[a]) < static_cast<std::uint64_t>(when[b]);
    });
    set_bucket_bytes(options_.bucket_bytes);
  }
  next_micro_batch();
}

void GradientBuckets::set_bucket_bytes(std::int64_t bytes) {
  const auto states = compression_state();
  options_.bucket_bytes = bytes;
  lay_out();
  set_compression_state(states);
}

std::size_t GradientBuckets::size() const {
  return buckets_.size();
}

std::vector<CompressionState> GradientBuckets::compression_state() const {
  std::vector<CompressionState> states(parameters_.size());
  for (const auto& bucket : buckets_)
    for (std::size_t i = 0; i < bucket.members.size(); ++i)
      states[bucket.members[i]] = bucket.reduction->state(i);
  return states;
}

void GradientBuckets::set_compression_state(const std::vector<CompressionState>& states) {
  for (const auto& bucket : buckets_)
    for (std::size_t i = 0; i < bucket.members.size(); ++i)
      bucket.reduction->set_state(i, states.at(bucket.members[i]));
}

} // namespace troupe::learner
