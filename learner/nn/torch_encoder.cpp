#include <algorithm>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "learner/nn/encoder.hpp"
#include "learner/nn/kernels/parallel.hpp"

namespace troupe::learner {
namespace {

/// Shifts one image [channels, height, width] with replicated borders, and converts each byte by
/// the table; out is [height, width, channels].
template <class Element>
void shift_by_table(const std::uint8_t* image, const ImageShape& shape, Shift shift,
                    const Element* table, Element* out) {
  const std::int64_t plane = shape.height * shape.width;
  for (std::int64_t y = 0; y < shape.height; ++y) {
    const auto from = std::clamp<std::int64_t>(y + shift.y, 0, shape.height - 1);
    const std::uint8_t* row = image + from * shape.width;
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const std::uint8_t* pixel = row + std::clamp<std::int64_t>(x + shift.x, 0, shape.width - 1);
      for (std::int64_t c = 0; c < shape.channels; ++c)
        *out++ = table[pixel[c * plane]];
    }
  }
}

} // namespace

at::Tensor offsets_of(const std::vector<Shift>& shifts) {
  at::Tensor offsets = at::empty({static_cast<std::int64_t>(shifts.size()), 2}, at::kLong);
  auto* out = offsets.mutable_data_ptr<std::int64_t>();
  for (const Shift& shift : shifts) {
    *out++ = shift.y;
    *out++ = shift.x;
  }
  return offsets;
}

namespace {

class TorchEncoder : public Encoder {
public:
  TorchEncoder(const EncoderShape& shape, at::ScalarType type) : shape_(shape), type_(type) {}
  std::string name() const override { return std::string(c10::toString(type_)) + " convolutions"; }

  void forward(const EncoderShape::Tensors& parameters, EncoderTape& tape) override {
    const auto& layers = shape_.layers();
    tape.activations.resize(layers.size() + 1);
    tape.activations[0] = shifted(tape);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      at::Tensor out =
          at::convolution(tape.activations[i], weight(parameters, i), parameters.bias[i].to(type_),
                          {layers[i].stride, layers[i].stride}, {0, 0}, {1, 1}, false, {0, 0}, 1);
      tape.activations[i + 1] =
          shape_.activation() == Activation::elu ? at::elu_(out) : out.relu_();
    }
    // [batch, channels, height, width] to [batch, height * width * channels]
    tape.features = tape.activations.back()
                        .permute({0, 2, 3, 1})
                        .reshape({tape.images.size(0), shape_.features()})
                        .to(parameters.bias[0].scalar_type());
  }

  void backward(const EncoderShape::Tensors& parameters, const EncoderShape::Tensors& gradients,
                const EncoderTape& tape, const at::Tensor& gradient) override {
    const auto& layers = shape_.layers();
    const ImageShape& out = layers.back().out;
    at::Tensor flow = gradient.view({gradient.size(0), out.height, out.width, out.channels})
                          .permute({0, 3, 1, 2})
                          .to(type_);
    for (std::size_t i = layers.size(); i-- > 0;) {
      const at::Tensor& y = tape.activations[i + 1];
      flow = shape_.activation() == Activation::elu
                 ? flow * at::where(y > 0, at::ones_like(y), y + 1)
                 : at::threshold_backward(flow, y, 0);
      auto [input, weights, bias] = at::convolution_backward(
          flow, tape.activations[i], weight(parameters, i), at::IntArrayRef{layers[i].out.channels},
          {layers[i].stride, layers[i].stride}, {0, 0}, {1, 1}, false, {0, 0}, 1,
          {i > 0, true, true});
      at::Tensor stored = gradients.weight[i].view(stored_sizes(i));
      stored.copy_(
          weights.permute(i == 0 ? at::IntArrayRef{1, 2, 3, 0} : at::IntArrayRef{2, 3, 1, 0}));
      at::Tensor(gradients.bias[i]).copy_(bias);
      flow = input;
    }
  }

private:
  std::vector<std::int64_t> stored_sizes(std::size_t i) const {
    const Convolution& c = shape_.layers()[i];
    return i == 0 ? std::vector<std::int64_t>{c.in.channels, c.kernel, c.kernel, c.out.channels}
                  : std::vector<std::int64_t>{c.kernel, c.kernel, c.in.channels, c.out.channels};
  }

  /// Returns the weight in the layout of convolutions: [out, in, row, column].
  at::Tensor weight(const EncoderShape::Tensors& parameters, std::size_t i) const {
    return parameters.weight[i]
        .view(stored_sizes(i))
        .permute(i == 0 ? at::IntArrayRef{3, 0, 1, 2} : at::IntArrayRef{3, 2, 0, 1})
        .to(type_)
        .contiguous(at::MemoryFormat::ChannelsLast);
  }

  at::Tensor shifted(const EncoderTape& tape) const {
    const at::ScalarType wide = type_ == at::kDouble ? at::kDouble : at::kFloat;
    const auto centred = [&](const at::Tensor& bytes) {
      return bytes.to(wide).div_(255).sub_(0.5).to(type_);
    };
    if (!tape.images.is_cpu() || tape.shifts.offsets.defined())
      return centred(moved_on_device(tape)).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor table = centred(at::arange(256));
    at::Tensor moved =
        at::empty(tape.images.sizes(), table.options(), at::MemoryFormat::ChannelsLast);
    if (type_ == at::kDouble)
      move_on_cpu<double>(tape, table, moved);
    else if (type_ == at::kFloat)
      move_on_cpu<float>(tape, table, moved);
    else
      move_on_cpu<std::uint16_t>(tape, table, moved); // the bits of a bfloat16
    return moved;
  }

  template <class Element>
  void move_on_cpu(const EncoderTape& tape, const at::Tensor& table, at::Tensor& moved) const {
    const auto* images = tape.images.const_data_ptr<std::uint8_t>();
    const auto* values = static_cast<const Element*>(table.const_data_ptr());
    auto* out = static_cast<Element*>(moved.mutable_data_ptr());
    const std::int64_t size = shape_.image().size();
    const auto part = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        shift_by_table(images + i * size, shape_.image(),
                       tape.shifts.drawn[static_cast<std::size_t>(i)], values, out + i * size);
    };
    if (at::get_num_threads() == 1)
      part(0, tape.images.size(0));
    else
      over_threads(tape.images.size(0), 1, part);
  }

  at::Tensor moved_on_device(const EncoderTape& tape) const {
    const ImageShape& image = shape_.image();
    const std::int64_t batch = tape.images.size(0);
    const at::Tensor offsets = tape.shifts.offsets.defined()
                                   ? tape.shifts.offsets
                                   : offsets_of(tape.shifts.drawn).to(tape.images.device());
    const auto index = [&](std::int64_t column, std::int64_t size) {
      const at::Tensor place = at::arange(size, offsets.options()).unsqueeze(0);
      return (offsets.select(1, column).unsqueeze(1) + place).clamp(0, size - 1);
    };
    const at::IntArrayRef sizes = tape.images.sizes();
    const at::Tensor y = index(0, image.height).view({batch, 1, image.height, 1}).expand(sizes);
    const at::Tensor x = index(1, image.width).view({batch, 1, 1, image.width}).expand(sizes);
    return tape.images.gather(2, y).gather(3, x);
  }

  EncoderShape shape_;
  at::ScalarType type_;
};

} // namespace

std::unique_ptr<Encoder> make_torch_encoder(const EncoderShape& shape, at::ScalarType type) {
  return std::make_unique<TorchEncoder>(shape, type);
}

} // namespace troupe::learner
