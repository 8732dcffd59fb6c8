#include "learner/nn/batch_norm_relu.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "learner/nn/global_batch_norm.hpp"
#include "learner/nn/kernels/norm_kernels.hpp"
#include "learner/nn/kernels/parallel.hpp"

namespace troupe::learner {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = std::optional<at::Tensor>;

constexpr std::int64_t kChunkElements = 1 << 16; // of a chunk of rows that are summed together

struct Rows {
  explicit Rows(const at::Tensor& x)
      : channels(x.size(1)),
        count(x.numel() / channels),
        chunk(std::clamp<std::int64_t>(kChunkElements / channels, 16, 1024)),
        chunks((count + chunk - 1) / chunk) {}
  std::int64_t channels;
  std::int64_t count;
  std::int64_t chunk;
  std::int64_t chunks;

  /// Calls part(chunk, first row, rows) for each chunk, on all threads.
  template <class F>
  void each(const F& part) const {
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        part(i, i * chunk, std::min(chunk, count - i * chunk));
    };
    if (at::get_num_threads() == 1)
      run(0, chunks);
    else
      over_threads(chunks, 1, run);
  }
};

template <class Element>
const Element* element_data(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<const Element*>(tensor.const_data_ptr()) : nullptr;
}
template <class Element>
Element* element_data(at::Tensor& tensor) {
  return tensor.defined() ? static_cast<Element*>(tensor.mutable_data_ptr()) : nullptr;
}
template <class Element>
Element* at_row(Element* first, std::int64_t offset) {
  return first ? first + offset : nullptr;
}

/// Calls call(kernels, an Element) for the tensor's type.
template <class F>
void with_kernels(const at::Tensor& x, const F& call) {
  if (x.scalar_type() == at::kBFloat16)
    call(norm_kernels().bfloat16, std::uint16_t());
  else
    call(norm_kernels().float32, float());
}

/// Returns two sums per channel, [2, channels], float64. sum(offset, rows, first, second) adds the
/// rows of one chunk, which begins at element `offset`, to both.
template <class F>
at::Tensor sums_over(const Rows& rows, const F& sum) {
  auto parts = at::zeros({rows.chunks, 2, rows.channels}, at::kFloat);
  auto* first = parts.mutable_data_ptr<float>();
  rows.each([&](std::int64_t chunk, std::int64_t row, std::int64_t count) {
    float* mine = first + chunk * 2 * rows.channels;
    sum(row * rows.channels, count, mine, mine + rows.channels);
  });
  return parts.sum({0}, false, at::kDouble);
}

struct Fused : torch::autograd::Function<Fused> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const Optional& residual,
                            const Optional& running_mean, const Optional& running_variance,
                            double momentum, double epsilon) {
    const Rows rows(x);
    if (rows.count < 2)
      throw std::invalid_argument("batch norm: one row of one value per channel has no variance; "
                                  "use a larger batch or larger pictures");
    // Sum around one value of each channel, so that the squares do not cancel.
    const auto shift = x.permute({0, 2, 3, 1}).view({-1, rows.channels})[0].to(at::kFloat);
    const auto more = residual.value_or(at::Tensor());
    auto y = at::empty_like(x);
    at::Tensor scale, offset, mean, inverse;
    with_kernels(x, [&]<class Element>(const ChannelKernels<Element>& kernels, Element) {
      const auto sums =
          sums_over(rows, [&](std::int64_t at, std::int64_t count, float* sum, float* square) {
            kernels.moments(element_data<Element>(x) + at, shift.const_data_ptr<float>(), sum,
                            square, count, rows.channels);
          });
      const auto off = sums[0] / static_cast<double>(rows.count);
      const auto variance = (sums[1] / static_cast<double>(rows.count) - off * off).clamp_min_(0);
      mean = off + shift;
      inverse = (variance + epsilon).rsqrt_();
      average(running_mean, running_variance, mean, variance, momentum, rows.count);
      const auto wide = inverse * weight;
      scale = wide.to(at::kFloat);
      offset = (bias - mean * wide).to(at::kFloat);
      auto* out = element_data<Element>(y);
      rows.each([&](std::int64_t, std::int64_t row, std::int64_t count) {
        const auto at = row * rows.channels;
        kernels.apply(element_data<Element>(x) + at, at_row(element_data<Element>(more), at),
                      scale.const_data_ptr<float>(), offset.const_data_ptr<float>(), out + at,
                      count, rows.channels);
      });
    });
    // Without a residual, x determines which values passed the ReLU.
    context->save_for_backward(
        {x, more.defined() ? y : at::Tensor(), scale, offset, mean, inverse});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &y = saved[1], &scale = saved[2], &offset = saved[3];
    const auto &mean = saved[4], &inverse = saved[5];
    const auto gradient = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const Rows rows(x);
    const auto narrow_mean = mean.to(at::kFloat);
    auto masked = y.defined() ? at::empty_like(x) : at::Tensor();
    auto out = at::empty_like(x);
    at::Tensor sums;
    with_kernels(x, [&]<class Element>(const ChannelKernels<Element>& kernels, Element) {
      auto* kept = element_data<Element>(masked);
      sums = sums_over(rows, [&](std::int64_t at, std::int64_t count, float* sum, float* product) {
        kernels.gradient_sums(element_data<Element>(gradient) + at, element_data<Element>(x) + at,
                              at_row(element_data<Element>(y), at), scale.const_data_ptr<float>(),
                              offset.const_data_ptr<float>(), narrow_mean.const_data_ptr<float>(),
                              at_row(kept, at), sum, product, count, rows.channels);
      });
      // out = scale · (g - mean(g) - (x - mean) · inverse^2 · mean(g · (x - mean)))
      const auto slope =
          scale * sums[1] * inverse * inverse * (-1.0 / static_cast<double>(rows.count));
      const auto constant =
          (scale * sums[0] * (-1.0 / static_cast<double>(rows.count)) - slope * mean)
              .to(at::kFloat);
      const auto narrow_slope = slope.to(at::kFloat);
      auto* to = element_data<Element>(out);
      const auto* from = masked.defined() ? kept : element_data<Element>(gradient);
      rows.each([&](std::int64_t, std::int64_t row, std::int64_t count) {
        const auto at = row * rows.channels;
        kernels.input_gradient(from + at, element_data<Element>(x) + at,
                               scale.const_data_ptr<float>(),
                               masked.defined() ? nullptr : offset.const_data_ptr<float>(),
                               narrow_slope.const_data_ptr<float>(),
                               constant.const_data_ptr<float>(), to + at, count, rows.channels);
      });
    });
    const at::Tensor none;
    return {
        out, (sums[1] * inverse).to(at::kFloat), sums[0].to(at::kFloat), masked, none, none, none,
        none};
  }

private:
  static void average(const Optional& running_mean, const Optional& running_variance,
                      const at::Tensor& mean, const at::Tensor& variance, double momentum,
                      std::int64_t count) {
    if (!running_mean)
      return;
    const auto rows = static_cast<double>(count);
    running_mean->mul_(1 - momentum).add_(mean.to(at::kFloat), momentum);
    running_variance->mul_(1 - momentum)
        .add_((variance * (rows / (rows - 1))).to(at::kFloat), momentum);
  }
};

bool fusible(const torch::nn::BatchNorm2dImpl& norm, const at::Tensor& x,
             const at::Tensor& residual) {
  const auto lies_well = [&](const at::Tensor& tensor) {
    return tensor.is_contiguous(at::MemoryFormat::ChannelsLast)
           && tensor.scalar_type() == x.scalar_type() && tensor.is_cpu();
  };
  const auto type = x.scalar_type();
  return norm.is_training() && x.dim() == 4 && x.numel() > 0 && lies_well(x)
         && (type == at::kFloat || type == at::kBFloat16)
         && (!residual.defined() || (residual.sizes() == x.sizes() && lies_well(residual)))
         && norm.weight.defined() && norm.weight.numel() == x.size(1)
         && norm.weight.scalar_type() == at::kFloat && norm.options.momentum()
         && !is_global_batch_norm(norm.weight);
}

} // namespace

at::Tensor batch_norm_relu(torch::nn::BatchNorm2d& norm, const at::Tensor& x,
                           const at::Tensor& residual) {
  if (!fusible(*norm, x, residual)) {
    auto y = norm->forward(x);
    if (residual.defined())
      y += residual;
    return y.relu_();
  }
  const auto some = [](const at::Tensor& tensor) {
    return tensor.defined() ? Optional(tensor) : std::nullopt;
  };
  if (norm->num_batches_tracked.defined())
    norm->num_batches_tracked += 1;
  return Fused::apply(x, norm->weight, norm->bias, some(residual), some(norm->running_mean),
                      some(norm->running_var), *norm->options.momentum(), norm->options.eps());
}

} // namespace troupe::learner
