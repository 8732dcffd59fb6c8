#include "learner/nn/global_batch_norm.hpp"

#include <cmath>
#include <ostream>
#include <stdexcept>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <ATen/Context.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/batch_norm_native.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/TensorImpl.h>

#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::ReduceOp;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = std::optional<at::Tensor>;

/// Marks a batch norm's tensors as global. The mark is part of the tensor, so that no list of
/// converted modules is needed.
struct Mark : c10::BackendMeta {
  explicit Mark(Communicator* over) : communicator(over) {}
  Communicator* communicator;
};

Communicator* communicator_of(const at::Tensor& tensor) {
  if (!tensor.defined())
    return nullptr;
  auto* mark = dynamic_cast<Mark*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
  return mark ? mark->communicator : nullptr;
}

bool mark(const at::Tensor& tensor, Communicator* communicator) {
  if (!tensor.defined())
    return false;
  tensor.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<Mark>(communicator));
  return true;
}

/// Moments over the rows of all replicas, float64 (float32 if the device lacks it), [channels].
struct Moments {
  double count = 0;
  at::Tensor mean;
  at::Tensor variance; // biased
};

std::vector<std::int64_t> all_but_channels(const at::Tensor& input) {
  std::vector<std::int64_t> dimensions;
  for (std::int64_t i = 0; i < input.dim(); ++i)
    if (i != 1)
      dimensions.push_back(i);
  return dimensions;
}

/// Reshapes [channels] to one row, for arithmetic with [rows, channels, …].
at::Tensor beside(const at::Tensor& channels, const at::Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = channels.numel();
  return channels.to(input.scalar_type()).view(shape);
}

Moments global_moments(const at::Tensor& input, Communicator& communicator) {
  const auto channels = input.size(1);
  const auto rows = channels > 0 ? input.numel() / channels : 0;
  const auto options = input.options().dtype(at::kDouble);
  auto mine = at::zeros({2 * channels + 1}, options); // mean, variance, count
  if (rows > 0) {
    const auto type = input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const auto [variance, mean] = at::var_mean(input.to(type), all_but_channels(input), 0, false);
    mine.narrow(0, 0, channels).copy_(mean);
    mine.narrow(0, channels, channels).copy_(variance);
    mine[2 * channels].fill_(rows);
  }
  const auto all = at::stack(communicator.all_gather(mine)); // [replica, …]
  const auto counts = all.select(1, 2 * channels).unsqueeze(1);
  const auto means = all.narrow(1, 0, channels);
  Moments moments;
  moments.count = counts.sum().item<double>();
  moments.mean = (means * counts).sum(0) / moments.count;
  moments.variance =
      ((all.narrow(1, channels, channels) + (means - moments.mean).pow(2)) * counts).sum(0)
      / moments.count;
  return moments;
}

void update_running(const Optional& running_mean, const Optional& running_variance,
                    const Moments& moments, double momentum) {
  if (!running_mean || !running_mean->defined())
    return;
  const double unbiased = moments.count > 1 ? moments.count / (moments.count - 1) : 1;
  running_mean->mul_(1 - momentum).add_(moments.mean.to(running_mean->scalar_type()), momentum);
  running_variance->mul_(1 - momentum)
      .add_((moments.variance * unbiased).to(running_variance->scalar_type()), momentum);
}

struct Normalise : torch::autograd::Function<Normalise> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const Optional& weight, const Optional& bias,
                            const Optional& running_mean, const Optional& running_variance,
                            double momentum, double epsilon, Communicator* communicator) {
    const auto moments = global_moments(input, *communicator);
    if (moments.count <= 1)
      throw std::invalid_argument("global batch norm: one row of one value per channel over all "
                                  "replicas has no variance; use a larger batch");
    update_running(running_mean, running_variance, moments, momentum);
    const auto type = weight && weight->defined()          ? weight->scalar_type()
                      : input.scalar_type() == at::kDouble ? at::kDouble
                                                           : at::kFloat;
    const auto mean = moments.mean.to(type);
    const auto inverse = (moments.variance + epsilon).rsqrt().to(type);
    context->save_for_backward({input, weight.value_or(at::Tensor()), mean, inverse});
    context->saved_data["count"] = moments.count;
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["communicator"] =
        static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(communicator));
    return std::get<0>(at::native_batch_norm(input, weight, bias, mean, moments.variance.to(type),
                                             false, 0, epsilon));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &input = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3];
    auto& communicator = *reinterpret_cast<Communicator*>(
        static_cast<std::intptr_t>(context->saved_data["communicator"].toInt()));
    const double count = context->saved_data["count"].toDouble();
    const auto& gradient = gradients[0];
    // Sums over this replica's rows: of gradient · normalised input, and of the gradient.
    const auto ones = weight.defined() ? weight : at::ones({input.size(1)}, mean.options());
    auto [with_input, alone] =
        local_sums(gradient, input, ones, mean, inverse, context->saved_data["epsilon"].toDouble());
    auto sums = at::cat({with_input, alone}).to(at::kDouble);
    communicator.all_reduce(sums, ReduceOp::sum);
    sums.div_(count);
    const auto wide_inverse = inverse.to(at::kDouble);
    const auto scale = ones.to(at::kDouble) * wide_inverse;
    const auto slope = -scale * wide_inverse * sums.narrow(0, 0, input.size(1));
    const auto offset =
        -scale * sums.narrow(0, input.size(1), input.size(1)) - slope * mean.to(at::kDouble);
    auto result = at::addcmul(beside(offset, input), gradient, beside(scale, input));
    result.addcmul_(input, beside(slope, input));
    const at::Tensor none;
    return {result,
            weight.defined() ? with_input : none,
            weight.defined() ? alone : none,
            none,
            none,
            none,
            none,
            none};
  }

private:
  static std::pair<at::Tensor, at::Tensor>
  local_sums(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
             const at::Tensor& mean, const at::Tensor& inverse, double epsilon) {
    if (input.numel() == 0)
      return {at::zeros_like(mean), at::zeros_like(mean)};
    auto [unused, with_input, alone] = at::native_batch_norm_backward(
        gradient, input, weight, {}, {}, mean, inverse, true, epsilon, {false, true, true});
    return {with_input, alone};
  }
};

at::Tensor batch_norm(const at::Tensor& input, const Optional& weight, const Optional& bias,
                      const Optional& running_mean, const Optional& running_variance, bool training,
                      double momentum, double epsilon, bool cudnn_enabled) {
  auto* communicator = communicator_of(weight.value_or(at::Tensor()));
  if (!communicator)
    communicator = communicator_of(running_mean.value_or(at::Tensor()));
  if (!communicator || !training)
    return at::native::batch_norm(input, weight, bias, running_mean, running_variance, training,
                                  momentum, epsilon, cudnn_enabled);
  return Normalise::apply(input, weight, bias, running_mean, running_variance, momentum, epsilon,
                          communicator);
}

/// Replaces LibTorch's batch norm, and calls the original one for unmarked tensors.
TORCH_LIBRARY_IMPL(aten, AutogradCPU, library) {
  library.impl("batch_norm", batch_norm);
}
TORCH_LIBRARY_IMPL(aten, AutogradCUDA, library) {
  library.impl("batch_norm", batch_norm);
}

template <class BatchNorm>
bool convert(torch::nn::Module& module, Communicator* communicator, const std::string& name) {
  auto* norm = module.as<BatchNorm>();
  if (!norm)
    return false;
  const bool weight = mark(norm->weight, communicator);
  const bool mean = mark(norm->running_mean, communicator);
  if (!weight && !mean)
    throw std::invalid_argument("convert_batch_norm: \"" + name
                                + "\" has neither weights nor running averages that identify it; "
                                  "make it affine, or use GlobalBatchNorm");
  return true;
}

Communicator* group_of(ReplicaContext& context) {
  return context.parameters_are_equal() && context.num_replicas_in_sync() > 1
             ? context.communicator()
             : nullptr;
}

} // namespace

bool is_global_batch_norm(const at::Tensor& weight_or_running_mean) {
  return communicator_of(weight_or_running_mean) != nullptr;
}

GlobalBatchNormImpl::GlobalBatchNormImpl(ReplicaContext& context,
                                         const torch::nn::BatchNormOptions& wanted)
    : BatchNormImplBase(wanted) {
  const bool known = mark(weight, group_of(context));
  if (!mark(running_mean, group_of(context)) && !known)
    throw std::invalid_argument("GlobalBatchNorm: without affine and track_running_stats there is "
                                "no tensor that identifies it; "
                                "set one of them");
}

/// The same as LibTorch's, except that this replica may have a single value per channel.
at::Tensor GlobalBatchNormImpl::forward(const at::Tensor& input) {
  if (!is_global_batch_norm(weight) && !is_global_batch_norm(running_mean))
    return BatchNormImplBase::forward(input);
  _check_input_dim(input);
  double momentum = options.momentum().value_or(0);
  if (is_training() && num_batches_tracked.defined()) {
    num_batches_tracked += 1;
    if (!options.momentum())
      momentum = 1 / num_batches_tracked.item<double>();
  }
  return at::batch_norm(input, weight, bias, running_mean, running_var,
                        is_training() || !options.track_running_stats(), momentum, options.eps(),
                        at::globalContext().userEnabledCuDNN());
}

void GlobalBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << "GlobalBatchNorm(" << options.num_features() << ", eps=" << options.eps() << ')';
}

void GlobalBatchNormImpl::_check_input_dim(const at::Tensor& input) {
  if (input.dim() < 2 || input.size(1) != options.num_features())
    throw std::invalid_argument("GlobalBatchNorm: the input is " + Nest(input).describe()
                                + "; it must be [rows, " + std::to_string(options.num_features())
                                + " channels, …]");
}

void agree_on_buffers(torch::nn::Module& module, ReplicaContext& context) {
  if (group_of(context) == nullptr)
    return;
  const at::NoGradGuard guard;
  for (auto& buffer : module.buffers())
    context.broadcast_(buffer);
}

int convert_batch_norm(torch::nn::Module& module, ReplicaContext& context) {
  auto* communicator = group_of(context);
  int count = 0;
  const auto visit = [&](torch::nn::Module& one, const std::string& name) {
    if (convert<torch::nn::BatchNorm1dImpl>(one, communicator, name)
        || convert<torch::nn::BatchNorm2dImpl>(one, communicator, name)
        || convert<torch::nn::BatchNorm3dImpl>(one, communicator, name))
      ++count;
  };
  visit(module, module.name());
  for (const auto& item : module.named_modules("", false))
    visit(*item.value(), item.key());
  return count;
}

} // namespace troupe::learner
