#include "learner/nn/picture_normaliser.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include <ATen/Dispatch.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>

#include "learner/nn/kernels/parallel.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kValues = 256;
constexpr std::int64_t kGrain = 1 << 14; // minimum bytes per thread

/// out = table[channel][in], channels-last or in planes.
template <class T>
void look_up(const std::uint8_t* in, const T* table, T* out, std::int64_t pixels,
             std::int64_t channels) {
  over_threads(pixels, kGrain / channels + 1, [=](std::int64_t first, std::int64_t last) {
    for (auto pixel = first; pixel < last; ++pixel)
      for (std::int64_t channel = 0; channel < channels; ++channel)
        out[pixel * channels + channel] = table[channel * kValues + in[pixel * channels + channel]];
  });
}

template <class T>
void look_up_planes(const std::uint8_t* in, const T* table, T* out, std::int64_t planes,
                    std::int64_t pixels, std::int64_t channels) {
  over_threads(planes, kGrain / pixels + 1, [=](std::int64_t first, std::int64_t last) {
    for (auto plane = first; plane < last; ++plane)
      for (std::int64_t pixel = plane * pixels; pixel < (plane + 1) * pixels; ++pixel)
        out[pixel] = table[plane % channels * kValues + in[pixel]];
  });
}

std::vector<double> per_channel(const std::vector<double>& values, std::int64_t channels,
                                const std::string& name) {
  if (values.size() != 1 && values.size() != static_cast<std::size_t>(channels))
    throw std::invalid_argument(name + " has " + std::to_string(values.size())
                                + " numbers; give one, or one for each of the "
                                + std::to_string(channels) + " channels");
  for (const double value : values)
    if (!std::isfinite(value) || (name == "standard_deviation" && value <= 0))
      throw std::invalid_argument(name + ' ' + std::to_string(value) + " must be finite"
                                  + (name == "mean" ? "" : " and above 0"));
  return values.size() == 1 ? std::vector<double>(static_cast<std::size_t>(channels), values[0])
                            : values;
}

} // namespace

PictureNormaliser::PictureNormaliser(const std::vector<double>& mean,
                                     const std::vector<double>& deviation, std::int64_t channels)
    : scale_(at::empty({channels}, at::kDouble)), offset_(at::empty({channels}, at::kDouble)) {
  const auto means = per_channel(mean, channels, "mean");
  const auto deviations = per_channel(deviation, channels, "standard_deviation");
  for (std::size_t i = 0; i < means.size(); ++i) {
    scale_.mutable_data_ptr<double>()[i] = 1 / (255 * deviations[i]);
    offset_.mutable_data_ptr<double>()[i] = -means[i] / deviations[i];
  }
}

void PictureNormaliser::to(at::Device device) {
  scale_ = scale_.to(device);
  offset_ = offset_.to(device);
}

at::Tensor PictureNormaliser::operator()(const at::Tensor& pictures, at::ScalarType type) const {
  if (pictures.scalar_type() != at::kByte)
    return pictures.to(type);
  const auto channels = scale_.numel();
  if (!pictures.is_cpu()) {
    const auto beside = [&](const at::Tensor& values) {
      const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;
      return values.to(pictures.device(), wide).view({1, channels, 1, 1});
    };
    return at::mul(pictures, beside(scale_)).add_(beside(offset_)).to(type);
  }
  const auto layout = pictures.suggest_memory_format();
  const auto dense = pictures.contiguous(layout);
  const auto out = at::empty(pictures.sizes(), pictures.options().dtype(type), layout);
  const auto table =
      (at::arange(kValues, at::kDouble) * scale_.cpu().unsqueeze(1) + offset_.cpu().unsqueeze(1))
          .to(type);
  const auto pixels = pictures.size(2) * pictures.size(3);
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, type, "normalise pictures", [&] {
    const auto* in = dense.const_data_ptr<std::uint8_t>();
    const auto* values = table.const_data_ptr<scalar_t>();
    auto* result = out.mutable_data_ptr<scalar_t>();
    if (layout == at::MemoryFormat::ChannelsLast)
      look_up(in, values, result, pictures.size(0) * pixels, channels);
    else
      look_up_planes(in, values, result, pictures.size(0) * channels, pixels, channels);
  });
  return out;
}

} // namespace troupe::learner
