#include "learner/nn/kernels/pointwise_convolution.hpp"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>

namespace troupe::learner {
namespace {

constexpr std::int64_t kPictures = 16; // from this number on LibTorch uses oneDNN

bool is_all(const torch::ExpandingArray<2>& numbers, std::int64_t value) {
  return (*numbers)[0] == value && (*numbers)[1] == value;
}

bool goes_to_mkl(const torch::nn::Conv2dImpl& conv, const at::Tensor& x) {
  const auto& options = conv.options;
  const auto* padding = std::get_if<torch::ExpandingArray<2>>(&options.padding());
  return is_all(options.kernel_size(), 1) && is_all(options.stride(), 1) && options.groups() == 1
         && padding && is_all(*padding, 0) && x.dim() == 4 && x.is_cpu()
         && x.scalar_type() == at::kFloat && x.size(0) < kPictures && x.numel() > 0
         && x.is_contiguous(at::MemoryFormat::ChannelsLast) && at::get_num_threads() == 1
         && !at::autocast::is_autocast_enabled(at::kCPU);
}

/// Returns the smallest divisor of `pixels` that is at least kPictures, or `pixels` itself if it is
/// smaller.
std::int64_t pictures_of(std::int64_t pixels) {
  for (std::int64_t pictures = kPictures; pictures < pixels; ++pictures)
    if (pixels % pictures == 0)
      return pictures;
  return pixels;
}

} // namespace

at::Tensor pointwise_convolution(torch::nn::Conv2d& conv, const at::Tensor& x) {
  if (!goes_to_mkl(*conv, x))
    return conv->forward(x);
  const auto pixels = x.size(0) * x.size(2) * x.size(3);
  const auto pictures = pictures_of(pixels);
  const auto shown = x.permute({0, 2, 3, 1})
                         .view({pictures, pixels / pictures, 1, x.size(1)})
                         .permute({0, 3, 1, 2});
  const auto y = conv->forward(shown);
  return y.permute({0, 2, 3, 1})
      .reshape({x.size(0), x.size(2), x.size(3), y.size(1)})
      .permute({0, 3, 1, 2});
}

} // namespace troupe::learner
