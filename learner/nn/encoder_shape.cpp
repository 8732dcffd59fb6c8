#include <stdexcept>

#include "learner/nn/encoder.hpp"

namespace troupe::learner {

EncoderShape::EncoderShape(const std::string& kind, const ImageShape& image,
                           std::int64_t channels) {
  struct Kernel {
    std::int64_t size;
    std::int64_t stride;
  };
  std::vector<Kernel> kernels;
  if (kind == "stride4")
    kernels = {{4, 4}, {3, 2}, {3, 2}};
  else if (kind == "drq")
    kernels = {{3, 2}, {3, 1}, {3, 1}, {3, 1}};
  else
    throw std::invalid_argument("d4pg.encoder is '" + kind + "'; it must be 'stride4' or 'drq'");
  ImageShape in = image;
  for (const Kernel& kernel : kernels) {
    if (in.height < kernel.size || in.width < kernel.size)
      throw std::invalid_argument(
          "d4pg.encoder '" + kind + "' cannot take images of " + std::to_string(image.height) + "x"
          + std::to_string(image.width)
          + " pixels: nothing is left behind its convolutions; use larger images");
    const ImageShape out = {channels, (in.height - kernel.size) / kernel.stride + 1,
                            (in.width - kernel.size) / kernel.stride + 1};
    layers_.push_back({kernel.size, kernel.stride, in, out});
    in = out;
  }
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

} // namespace troupe::learner
