#include <cmath>
#include <stdexcept>

#include "learner/nn/encoder.hpp"
#include "learner/nn/kernels/precision.hpp"
#include "learner/nn/kernels/rounded_product.hpp"

namespace troupe::learner {

EncoderKind encoder_kind(const std::string& kind, const std::string& key) {
  if (kind == "stride4")
    return {Activation::relu, {{4, 4}, {3, 2}, {3, 2}}};
  if (kind == "drq")
    return {Activation::relu, {{3, 2}, {3, 1}, {3, 1}, {3, 1}}};
  if (kind == "elu")
    return {Activation::elu, {{3, 2}, {3, 2}, {3, 2}, {3, 1}}};
  throw std::invalid_argument(key + " is '" + kind + "'; it must be 'stride4', 'drq' or 'elu'");
}

EncoderShape::EncoderShape(const std::string& kind, const ImageShape& image, std::int64_t channels,
                           const std::string& key)
    : kind_(kind), activation_(encoder_kind(kind, key).activation) {
  ImageShape in = image;
  for (const EncoderKind::Kernel& kernel : encoder_kind(kind, key).kernels) {
    if (in.height < kernel.size || in.width < kernel.size)
      throw std::invalid_argument(key + " '" + kind + "' cannot take images of "
                                  + std::to_string(image.height) + "x" + std::to_string(image.width)
                                  + " pixels; they must have at least "
                                  + std::to_string(least_image(kind)) + " rows and columns");
    const ImageShape out = {channels, (in.height - kernel.size) / kernel.stride + 1,
                            (in.width - kernel.size) / kernel.stride + 1};
    layers_.push_back({kernel.size, kernel.stride, in, out});
    in = out;
  }
}

std::int64_t least_image(const std::string& kind) {
  const std::vector<EncoderKind::Kernel> kernels = encoder_kind(kind).kernels;
  std::int64_t least = 1;
  for (auto kernel = kernels.rbegin(); kernel != kernels.rend(); ++kernel)
    least = (least - 1) * kernel->stride + kernel->size;
  return least;
}

std::unique_ptr<Encoder> make_encoder(const EncoderShape& shape, const std::string& precision,
                                      at::Device device) {
  if (precision == "float64")
    return make_torch_encoder(shape, at::kDouble);
  // Which encoders gain: measured in experiments/bench/RESULTS.md.
  const bool drq = shape.kind() == "drq";
  const bool has_amx = device.is_cpu() && multiplies_rounded();
  const bool direct = has_amx && has_direct_encoder(shape);
  const bool rounds = has_amx && !drq;
  const bool gains = !device.is_cpu() || direct || rounds || (drq && multiplies_bfloat16(device));
  if (precision == "bfloat16" || (precision == "auto" && gains))
    return direct   ? make_direct_encoder(shape)
           : rounds ? make_rounded_encoder(shape)
                    : make_torch_encoder(shape, at::kBFloat16);
  return device.is_cpu() ? make_patch_encoder(shape) : make_torch_encoder(shape, at::kFloat);
}

void EncoderShape::declare(ParameterLayout& layout, const std::string& prefix) {
  first_entry_ = layout.entries().size();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Convolution& c = layers_[i];
    const std::string name = prefix + ".conv" + std::to_string(i);
    if (i == 0)
      layout.add(name + ".weight", {c.in.channels, c.kernel, c.kernel, c.out.channels},
                 {3, 0, 1, 2});
    else
      layout.add(name + ".weight", {c.kernel, c.kernel, c.in.channels, c.out.channels},
                 {3, 2, 0, 1});
    layout.add(name + ".bias", {c.out.channels});
  }
}

EncoderShape::Tensors EncoderShape::bind(const ParameterLayout& layout,
                                         const at::Tensor& flat) const {
  Tensors tensors;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    tensors.weight.push_back(layout.stored_view(flat, first_entry_ + 2 * i)
                                 .view({layers_[i].patch(), layers_[i].out.channels}));
    tensors.bias.push_back(layout.stored_view(flat, first_entry_ + 2 * i + 1));
  }
  return tensors;
}

void EncoderShape::initialise(const ParameterLayout& layout, const at::Tensor& flat,
                              at::Generator& generator) const {
  const Tensors tensors = bind(layout, flat);
  for (const at::Tensor& weight : tensors.weight)
    orthogonal(weight, std::sqrt(2.0), generator);
  for (const at::Tensor& bias : tensors.bias)
    bias.zero_();
}

} // namespace troupe::learner
