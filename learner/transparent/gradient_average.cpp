#include "learner/transparent/gradient_average.hpp"

#include <unistd.h>

#include <mutex>
#include <utility>

#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "collectives/communicator.hpp"
#include "learner/transparent/fingerprint.hpp"

namespace troupe::learner::transparent {
namespace {

using collectives::Communicator;
using collectives::ReduceOp;

/// Converts a gradient to a bucket's layout: dense, row-major.
at::Tensor laid_out(const at::Tensor& gradient, at::ScalarType type) {
  return (gradient.is_sparse() ? gradient.to_dense() : gradient).to(type).contiguous();
}

} // namespace

/// Consecutive parameters of the same type and device.
struct GradientAverage::Bucket {
  struct Member {
    std::size_t parameter = 0;
    at::Tensor slice;          // part of the bucket, in the parameter's shape
    bool ready = false;        // backward has computed it in this round
    bool expected = true;      // some rank had a gradient in the last round
    std::uint64_t content = 0; // fingerprint of the gradient as sent early
  };

  at::Tensor flat; // [elements + members]; the tail is 1 per gradient here
  std::int64_t elements = 0;
  std::vector<Member> members;
  std::vector<float> present; // [member]; 1 where this rank has a gradient
  std::size_t missing = 0;    // number of members that are expected but not ready
  c10::intrusive_ptr<c10d::Work> work;

  void take(std::size_t member, const at::Tensor& gradient) {
    present[member] = gradient.defined() ? 1 : 0;
    auto& slice = members[member].slice;
    if (gradient.defined())
      slice.copy_(gradient.is_sparse() ? gradient.to_dense() : gradient);
    else
      slice.zero_();
  }

  void take_all(const std::vector<at::Tensor>& parameters) {
    for (std::size_t i = 0; i < members.size(); ++i)
      take(i, parameters[members[i].parameter].grad());
  }

  void write_present() {
    const auto count = static_cast<std::int64_t>(members.size());
    flat.narrow(0, elements, count).copy_(at::from_blob(present.data(), {count}, at::kFloat));
  }

  /// Returns whether the gradients differ from the ones sent.
  bool has_changed(const std::vector<at::Tensor>& parameters) const {
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto& gradient = parameters[members[i].parameter].grad();
      if (gradient.defined() != (present[i] > 0))
        return true;
      if (gradient.defined()
          && fingerprint(laid_out(gradient, flat.scalar_type())) != members[i].content)
        return true;
    }
    return false;
  }

  void hand_out(const std::vector<at::Tensor>& parameters) {
    const auto count = static_cast<std::int64_t>(members.size());
    const auto anywhere = flat.narrow(0, elements, count).to(at::kFloat);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto& parameter = parameters[members[i].parameter];
      auto& gradient = parameter.mutable_grad();
      members[i].expected = anywhere.const_data_ptr<float>()[i] > 0;
      if (!members[i].expected)
        gradient = at::Tensor();
      else if (gradient.defined() && !gradient.is_sparse())
        gradient.copy_(members[i].slice);
      else
        gradient = members[i].slice.to(parameter.device(), parameter.scalar_type(), false,
                                       /*copy=*/true);
    }
  }
};

/// Lets the hooks of the parameters find their owner. The hooks live until their parameters are
/// destroyed.
struct GradientAverage::Hooks {
  std::mutex mutex;
  GradientAverage* owner = nullptr;
  pid_t process = ::getpid(); // forked children are not ranks
};

class GradientAverage::Hook : public torch::autograd::PostAccumulateGradHook {
public:
  Hook(std::weak_ptr<Hooks> hooks, std::size_t parameter)
      : hooks_(std::move(hooks)), parameter_(parameter) {}

  void operator()(const at::Tensor& variable) override {
    const auto hooks = hooks_.lock();
    if (!hooks || hooks->process != ::getpid())
      return;
    const std::lock_guard lock(hooks->mutex);
    if (hooks->owner)
      hooks->owner->on_gradient(parameter_, variable.grad());
  }

private:
  std::weak_ptr<Hooks> hooks_;
  std::size_t parameter_;
};

GradientAverage::GradientAverage(Communicator& communicator, MakeChannel make_channel,
                                 std::int64_t bucket_bytes)
    : communicator_(communicator),
      make_channel_(std::move(make_channel)),
      bucket_bytes_(bucket_bytes) {}

GradientAverage::~GradientAverage() {
  if (!hooks_)
    return;
  const std::lock_guard lock(hooks_->mutex);
  hooks_->owner = nullptr;
}

Communicator& GradientAverage::carrier() const {
  return channel_ ? *channel_ : communicator_;
}

void GradientAverage::follow(const std::vector<at::Tensor>& parameters) {
  std::vector<const void*> identities;
  for (const auto& parameter : parameters)
    identities.push_back(parameter.unsafeGetTensorImpl());
  if (hooks_ && identities == identities_)
    return;
  drain();
  hooks_ = std::make_shared<Hooks>(); // earlier hooks no longer find an owner
  identities_ = std::move(identities);
  buckets_.clear();
  places_.resize(parameters.size());
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const auto& parameter = parameters[i];
    const auto joins = [&](const Bucket& bucket) {
      const auto& other = parameters[bucket.members.front().parameter];
      return other.scalar_type() == parameter.scalar_type() && other.device() == parameter.device()
             && (bucket.elements + parameter.numel())
                        * static_cast<std::int64_t>(parameter.element_size())
                    <= bucket_bytes_;
    };
    if (buckets_.empty() || !joins(buckets_.back()))
      buckets_.emplace_back();
    auto& bucket = buckets_.back();
    places_[i] = {buckets_.size() - 1, bucket.members.size()};
    bucket.members.emplace_back().parameter = i;
    bucket.elements += parameter.numel();
  }
  bool on_processor = true;
  for (auto& bucket : buckets_) {
    const auto& first = parameters[bucket.members.front().parameter];
    const auto count = bucket.members.size();
    bucket.present.assign(count, 0);
    bucket.flat = at::zeros({bucket.elements + static_cast<std::int64_t>(count)},
                            first.scalar_type()); // in CPU memory
    std::int64_t begin = 0;
    for (auto& member : bucket.members) {
      const auto& parameter = parameters[member.parameter];
      member.slice = bucket.flat.narrow(0, begin, parameter.numel()).view(parameter.sizes());
      begin += parameter.numel();
    }
    on_processor = on_processor && first.device().is_cpu();
  }
  if (!channel_ && buckets_.size() > 1 && on_processor && make_channel_)
    channel_ = std::exchange(make_channel_, {})();
  for (std::size_t i = 0; channel_ && i < parameters.size(); ++i)
    torch::autograd::impl::set_post_acc_grad_hooks(parameters[i],
                                                   std::make_unique<Hook>(hooks_, i));
  begin_round();
}

void GradientAverage::begin_round() {
  next_ = 0;
  for (auto& bucket : buckets_) {
    bucket.missing = 0;
    bucket.work.reset();
    for (auto& member : bucket.members) {
      member.ready = false;
      bucket.missing += member.expected ? 1 : 0;
    }
  }
  if (hooks_)
    hooks_->owner = channel_ && wasted_ < kMostWasted ? this : nullptr;
}

void GradientAverage::on_gradient(std::size_t parameter, const at::Tensor& gradient) {
  const auto [index, position] = places_[parameter];
  if (index < next_ || failure_ || !gradient.defined())
    return;
  const at::NoGradGuard no_grad;
  try {
    auto& bucket = buckets_[index];
    auto& member = bucket.members[position];
    bucket.take(position, gradient);
    member.content = fingerprint(member.slice);
    if (!member.ready && member.expected)
      --bucket.missing;
    member.ready = true;
    for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
      auto& whole = buckets_[next_];
      for (std::size_t i = 0; i < whole.members.size(); ++i)
        if (!whole.members[i].ready)
          whole.take(i, {});
      send(whole);
    }
  } catch (...) { // must not reach the program's backward
    failure_ = std::current_exception();
  }
}

void GradientAverage::send(Bucket& bucket) {
  bucket.write_present();
  if (buckets_.size() == 1) { // there is nothing to overlap
    carrier().all_reduce(bucket.flat, ReduceOp::mean);
    return;
  }
  std::vector<at::Tensor> tensors{bucket.flat};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::AVG;
  bucket.work = carrier().process_group()->allreduce(tensors, options);
}

/// Returns [bucket], 1 where the bucket must be sent again. The result is the same on all ranks.
at::Tensor GradientAverage::changed(const std::vector<at::Tensor>& parameters, std::size_t early,
                                    bool from_rank_0) {
  auto again =
      at::full({static_cast<std::int64_t>(buckets_.size())}, from_rank_0 ? 1.0f : 0.0f, at::kFloat);
  if (!hooks_->owner)
    return again;
  for (std::size_t i = 0; i < early; ++i)
    if (buckets_[i].has_changed(parameters))
      again.mutable_data_ptr<float>()[i] = 1;
  communicator_.all_reduce(again, ReduceOp::max);
  return again;
}

void GradientAverage::average(const std::vector<at::Tensor>& parameters, bool from_rank_0) {
  const at::NoGradGuard no_grad;
  follow(parameters);
  const std::lock_guard lock(hooks_->mutex);
  if (failure_)
    std::rethrow_exception(std::exchange(failure_, nullptr));
  const std::size_t early = next_;
  for (; next_ < buckets_.size(); ++next_) {
    buckets_[next_].take_all(parameters);
    send(buckets_[next_]);
  }
  const auto again = changed(parameters, early, from_rank_0);
  bool wasted = false;
  sent_early_ = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    auto& bucket = buckets_[i];
    if (bucket.work)
      bucket.work->wait();
    if (again.const_data_ptr<float>()[i] > 0) {
      wasted = true;
      bucket.take_all(parameters);
      bucket.write_present();
      if (from_rank_0)
        carrier().broadcast(bucket.flat, 0);
      else
        carrier().all_reduce(bucket.flat, ReduceOp::mean);
    } else {
      sent_early_ += i < early ? 1 : 0;
    }
    bucket.hand_out(parameters);
  }
  wasted_ += wasted && !from_rank_0 ? 1 : 0;
  begin_round();
}

void GradientAverage::drain() {
  if (!hooks_ || !channel_)
    return;
  const std::lock_guard lock(hooks_->mutex);
  if (hooks_->owner) {
    for (; next_ < buckets_.size(); ++next_)
      send(buckets_[next_]);
    for (auto& bucket : buckets_)
      if (bucket.work)
        bucket.work->wait();
  }
  begin_round();
}

} // namespace troupe::learner::transparent
