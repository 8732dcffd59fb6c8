#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "learner/nn/encoder.hpp"
#include "learner/nn/kernels/amx_convolution.hpp"
#include "learner/nn/kernels/amx_product.hpp"
#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/parallel.hpp"
#include "learner/nn/patch_products.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kTogether =
    32;                             // numbers, pixels and channels that the kernels take together
constexpr std::int64_t kSlack = 64; // pixels behind an image that the kernels may read and write

using Halfs = Array<std::uint16_t>;

/// Convolutions with AMX that read the activations in place. All activations behind the first layer
/// have lines of the same width, that of the first layer's output: `pitch`. A layer's output is
/// narrower, and what lies behind its lines is meaningless in the forward pass. The gradients are 0
/// there, so that one index over lines and columns finds neighbours of every pixel.
class DirectEncoder : public Encoder {
public:
  explicit DirectEncoder(const EncoderShape& shape)
      : shape_(shape), pitch_(shape.layers().front().out.width) {}
  std::string name() const override { return "convolutions in bfloat16 with AMX"; }
  void forward(const EncoderShape::Tensors& parameters, EncoderTape& tape) override;
  void backward(const EncoderShape::Tensors& parameters, const EncoderShape::Tensors& gradients,
                const EncoderTape& tape, const at::Tensor& gradient) override;

private:
  /// Scratch memory of one thread.
  struct Lane {
    Halfs gradient, before;   // of a layer's output and of its input, between margins of zeros
    Halfs transposed, packed; // a layer's input, and the gradient of its output
    std::vector<Floats> weight_sums, bias_sums; // per layer
  };

  const std::vector<Convolution>& layers() const { return shape_.layers(); }
  /// Numbers of an image of the tape: the input for `activation` 0, else the output of a layer.
  std::int64_t size_of(std::size_t activation) const;
  std::int64_t run() const; // numbers that a line of a patch takes in the first layer, padded
  std::int64_t margin() const { return (2 * pitch_ + 2) * layers().back().out.channels; }
  void pack(const EncoderShape::Tensors& parameters, bool backwards);
  void read_image(const EncoderTape& tape, std::int64_t image, std::uint16_t* out) const;
  void forward_image(const EncoderShape::Tensors& parameters, EncoderTape& tape,
                     std::int64_t image);
  void prepare(Lane& lane) const;
  void begin_gradient(const EncoderTape& tape, const float* gradient, std::int64_t image,
                      Lane& lane) const;
  void backward_image(const EncoderTape& tape, const float* gradient, std::int64_t image,
                      Lane& lane);
  void first_weights(const std::uint16_t* image, Lane& lane) const;
  void weights(std::size_t layer, const std::uint16_t* input, Lane& lane) const;
  void to_input(std::size_t layer, const std::uint16_t* output_before, Lane& lane) const;
  void clear_margins(std::size_t layer, std::uint16_t* gradient) const;
  std::int64_t lanes_for(std::int64_t batch);
  template <class F>
  void over_lanes(std::int64_t batch, const F& pass);

  EncoderShape shape_;
  std::int64_t pitch_;
  std::uint16_t values_[256]{};                                // of bytes
  std::vector<Halfs> packed_, packed_transposed_;              // per layer
  std::vector<std::vector<std::int64_t>> blocks_, transposed_; // per layer
  std::vector<Lane> lanes_;
};

std::uint16_t* image_of(const at::Tensor& activations, std::int64_t image) {
  return static_cast<std::uint16_t*>(activations.data_ptr()) + image * activations.size(1);
}

std::int64_t DirectEncoder::run() const {
  return rounded_up(layers()[0].kernel * layers()[0].in.channels, kTogether);
}

std::int64_t DirectEncoder::size_of(std::size_t activation) const {
  const Convolution& first = layers()[0];
  if (activation == 0)
    return first.in.size() + kSlack * first.stride * first.in.channels + run();
  const ImageShape& out = layers()[activation - 1].out;
  return (out.height * pitch_ + kSlack) * out.channels;
}

/// Packs the weights, and lists where a pixel of the output reads each block of them.
void DirectEncoder::pack(const EncoderShape::Tensors& parameters, bool backwards) {
  packed_.resize(layers().size());
  blocks_.resize(layers().size());
  packed_transposed_.resize(layers().size());
  transposed_.resize(layers().size());
  for (std::size_t i = backwards ? 1 : 0; i < layers().size(); ++i) {
    const Convolution& c = layers()[i];
    const std::int64_t in = c.in.channels, out = c.out.channels, kernel = c.kernel;
    const float* weight = parameters.weight[i].const_data_ptr<float>();
    std::vector<std::int64_t>& places = backwards ? transposed_[i] : blocks_[i];
    places.clear();
    Floats ordered; // [blocks of 32, channels of the result]
    if (i == 0) {
      grown(ordered, kernel * run() * out);
      for (std::int64_t y = 0; y < kernel; ++y) {
        for (std::int64_t x = 0; x < kernel; ++x)
          for (std::int64_t channel = 0; channel < in; ++channel)
            std::copy_n(weight + ((channel * kernel + y) * kernel + x) * out, out,
                        ordered.data() + (y * run() + x * in + channel) * out);
        for (std::int64_t begin = 0; begin < run(); begin += kTogether)
          places.push_back(y * c.in.width * in + begin);
      }
    } else {
      grown(ordered, c.patch() * out);
      for (std::int64_t y = 0; y < kernel; ++y)
        for (std::int64_t x = 0; x < kernel; ++x) {
          const std::int64_t at = y * kernel + x;
          const float* from = weight + at * in * out;
          float* to = ordered.data() + at * in * out;
          for (std::int64_t a = 0; a < in; ++a)
            for (std::int64_t b = 0; b < out; ++b)
              (backwards ? to[b * in + a] : to[a * out + b]) = from[a * out + b];
          for (std::int64_t begin = 0; begin < (backwards ? out : in); begin += kTogether)
            places.push_back(backwards ? begin - (y * pitch_ + x) * out
                                       : (y * pitch_ + x) * in + begin);
        }
    }
    const std::int64_t columns = backwards ? in : out;
    const std::int64_t k = static_cast<std::int64_t>(places.size()) * kTogether;
    Halfs& packed = backwards ? packed_transposed_[i] : packed_[i];
    pack_amx(Strided{ordered.data(), columns, 1}, k, columns, 1,
             grown(packed, amx_packed_size(k, columns)));
  }
}

std::int64_t DirectEncoder::lanes_for(std::int64_t batch) {
  const auto lanes =
      std::clamp<std::int64_t>(batch, 1, static_cast<std::int64_t>(at::get_num_threads()));
  if (static_cast<std::int64_t>(lanes_.size()) < lanes)
    lanes_.resize(static_cast<std::size_t>(lanes));
  return lanes;
}

template <class F>
void DirectEncoder::over_lanes(std::int64_t batch, const F& pass) {
  const std::int64_t lanes = lanes_for(batch);
  const auto part = [&](std::int64_t lane) {
    for (std::int64_t i = batch * lane / lanes; i < batch * (lane + 1) / lanes; ++i)
      pass(lanes_[static_cast<std::size_t>(lane)], i);
  };
  if (lanes == 1)
    return part(0);
  over_threads(lanes, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t lane = begin; lane < end; ++lane)
      part(lane);
  });
}

/// Writes the shifted image, [height, width, channels].
void DirectEncoder::read_image(const EncoderTape& tape, std::int64_t image,
                               std::uint16_t* out) const {
  const ImageShape& in = shape_.image();
  const auto* bytes = tape.images.const_data_ptr<std::uint8_t>() + image * in.size();
  const Shift shift = tape.shifts.drawn[static_cast<std::size_t>(image)];
  for (std::int64_t y = 0; y < in.height; ++y, out += in.width * in.channels)
    for (std::int64_t c = 0; c < in.channels; ++c) {
      const std::int64_t from = std::clamp<std::int64_t>(y + shift.y, 0, in.height - 1);
      const std::uint8_t* line = bytes + (c * in.height + from) * in.width;
      const std::int64_t first = std::clamp<std::int64_t>(-shift.x, 0, in.width);
      const std::int64_t last = std::clamp<std::int64_t>(in.width - shift.x, 0, in.width);
      std::uint16_t* to = out + c;
      for (std::int64_t x = 0; x < first; ++x)
        to[x * in.channels] = values_[line[0]];
      for (std::int64_t x = first; x < last; ++x)
        to[x * in.channels] = values_[line[x + shift.x]];
      for (std::int64_t x = std::max(first, last); x < in.width; ++x)
        to[x * in.channels] = values_[line[in.width - 1]];
    }
}

void DirectEncoder::forward_image(const EncoderShape::Tensors& parameters, EncoderTape& tape,
                                  std::int64_t image) {
  const auto at = [&](std::size_t i) { return image_of(tape.activations[i], image); };
  read_image(tape, image, at(0));
  for (std::size_t i = 0; i < layers().size(); ++i) {
    const Convolution& c = layers()[i];
    DirectConvolution convolution{.input = at(i),
                                  .step = (i == 0 ? c.stride : 1) * c.in.channels,
                                  .blocks = blocks_[i].data(),
                                  .block_count = static_cast<std::int64_t>(blocks_[i].size()),
                                  .weight = packed_[i].data(),
                                  .bias = parameters.bias[i].const_data_ptr<float>(),
                                  .pixels =
                                      i == 0 ? pitch_ : (c.out.height - 1) * pitch_ + c.out.width,
                                  .channels = c.out.channels};
    std::uint16_t* out = at(i + 1);
    if (i > 0) {
      convolve_relu(convolution, out);
      continue;
    }
    for (std::int64_t y = 0; y < c.out.height; ++y, out += pitch_ * c.out.channels) {
      convolve_relu(convolution, out);
      convolution.input += c.stride * c.in.width * c.in.channels;
    }
  }
  const ImageShape& out = layers().back().out;
  float* features = tape.features.mutable_data_ptr<float>() + image * shape_.features();
  for (std::int64_t y = 0; y < out.height; ++y)
    kernel_table().widen(at(layers().size()) + y * pitch_ * out.channels, nullptr,
                         features + y * out.width * out.channels, 1, out.width * out.channels);
}

void DirectEncoder::forward(const EncoderShape::Tensors& parameters, EncoderTape& tape) {
  const auto batch = static_cast<std::int64_t>(tape.shifts.drawn.size());
  if (values_[255] == 0) {
    float centred[256];
    for (int i = 0; i < 256; ++i)
      centred[i] = static_cast<float>(i) / 255 - 0.5f;
    kernel_table().narrow(centred, values_, 256);
  }
  tape.activations.resize(layers().size() + 1);
  for (std::size_t i = 0; i < tape.activations.size(); ++i)
    if (!tape.activations[i].defined() || tape.activations[i].size(0) != batch)
      tape.activations[i] = at::zeros({batch, size_of(i)}, at::kBFloat16);
  if (!tape.features.defined() || tape.features.size(0) != batch)
    tape.features = at::empty({batch, shape_.features()}, at::kFloat);
  pack(parameters, false);
  over_lanes(batch, [&](Lane&, std::int64_t image) { forward_image(parameters, tape, image); });
}

void DirectEncoder::prepare(Lane& lane) const {
  std::int64_t largest = 0;
  for (const Convolution& c : layers())
    largest = std::max(largest, c.out.height * pitch_ * c.out.channels);
  const std::int64_t size = largest + 2 * margin() + kSlack * layers().back().out.channels;
  for (Halfs* memory : {&lane.gradient, &lane.before})
    grown(*memory, size);
  lane.weight_sums.resize(layers().size());
  lane.bias_sums.resize(layers().size());
  for (std::size_t i = 0; i < layers().size(); ++i) {
    const Convolution& c = layers()[i];
    const std::int64_t k = i == 0 ? c.kernel * run() : c.patch();
    lane.weight_sums[i].assign(static_cast<std::size_t>(k * c.out.channels), 0);
    lane.bias_sums[i].assign(static_cast<std::size_t>(c.out.channels), 0);
  }
}

/// Sets what lies behind the lines and the last line to 0.
void DirectEncoder::clear_margins(std::size_t layer, std::uint16_t* gradient) const {
  const ImageShape& out = layers()[layer].out;
  for (std::int64_t y = 0; y < out.height; ++y)
    std::fill_n(gradient + (y * pitch_ + out.width) * out.channels,
                (pitch_ - out.width) * out.channels, std::uint16_t{0});
  std::fill_n(gradient + out.height * pitch_ * out.channels, margin() + kSlack * out.channels,
              std::uint16_t{0});
}

/// The gradient of the last layer's sums.
void DirectEncoder::begin_gradient(const EncoderTape& tape, const float* gradient,
                                   std::int64_t image, Lane& lane) const {
  const ImageShape& out = layers().back().out;
  const std::uint16_t* y = image_of(tape.activations.back(), image);
  std::uint16_t* to = lane.gradient.data() + margin();
  for (std::int64_t line = 0; line < out.height; ++line)
    mask_rounded(gradient + line * out.width * out.channels, y + line * pitch_ * out.channels,
                 out.width * out.channels, to + line * pitch_ * out.channels);
  clear_margins(layers().size() - 1, to);
}

/// Line by line, because lines of the input are not two lines of the output apart.
void DirectEncoder::first_weights(const std::uint16_t* image, Lane& lane) const {
  const Convolution& c = layers()[0];
  const std::int64_t channels = c.out.channels;
  const std::int64_t pixels = rounded_up(pitch_, kTogether);
  std::uint16_t* transposed = grown(lane.transposed, run() * pixels);
  std::uint16_t* packed = grown(lane.packed, amx_packed_size(pixels, channels));
  for (std::int64_t y = 0; y < c.out.height; ++y) {
    pack_amx(RoundedRows{lane.gradient.data() + margin() + y * pitch_ * channels, channels}, pitch_,
             channels, packed);
    for (std::int64_t k = 0; k < c.kernel; ++k) {
      transpose_rounded(image + (y * c.stride + k) * c.in.width * c.in.channels,
                        c.stride * c.in.channels, pixels, run(), transposed, pixels);
      multiply_amx(RoundedRows{transposed, pixels},
                   {.packed = packed,
                    .bias = nullptr,
                    .adds = true,
                    .c = lane.weight_sums[0].data() + k * run() * channels,
                    .c_row = channels,
                    .m = run(),
                    .n = channels,
                    .k = pitch_});
    }
  }
}

void DirectEncoder::weights(std::size_t layer, const std::uint16_t* input, Lane& lane) const {
  const Convolution& c = layers()[layer];
  const std::int64_t in = c.in.channels, out = c.out.channels;
  const std::int64_t pixels = c.out.height * pitch_;
  const std::int64_t count = rounded_up(rounded_up(pixels, kTogether) + 2 * pitch_ + 2, kTogether);
  std::uint16_t* transposed = grown(lane.transposed, in * count);
  transpose_rounded(input, in, count, in, transposed, count);
  std::uint16_t* packed = grown(lane.packed, amx_packed_size(pixels, out));
  pack_amx(RoundedRows{lane.gradient.data() + margin(), out}, pixels, out, packed);
  for (std::int64_t y = 0; y < c.kernel; ++y)
    for (std::int64_t x = 0; x < c.kernel; ++x)
      multiply_amx(RoundedRows{transposed + y * pitch_ + x, count},
                   {.packed = packed,
                    .bias = nullptr,
                    .adds = true,
                    .c = lane.weight_sums[layer].data() + (y * c.kernel + x) * in * out,
                    .c_row = out,
                    .m = in,
                    .n = out,
                    .k = pixels});
}

/// The gradient of the sums of the layer before.
void DirectEncoder::to_input(std::size_t layer, const std::uint16_t* output_before,
                             Lane& lane) const {
  const Convolution& c = layers()[layer];
  std::uint16_t* before = lane.before.data() + margin();
  convolve_masked({.input = lane.gradient.data() + margin(),
                   .step = c.out.channels,
                   .blocks = transposed_[layer].data(),
                   .block_count = static_cast<std::int64_t>(transposed_[layer].size()),
                   .weight = packed_transposed_[layer].data(),
                   .bias = nullptr,
                   .pixels = (c.in.height - 1) * pitch_ + c.in.width,
                   .channels = c.in.channels},
                  output_before, before);
  clear_margins(layer - 1, before);
  std::swap(lane.gradient, lane.before);
}

void DirectEncoder::backward_image(const EncoderTape& tape, const float* gradient,
                                   std::int64_t image, Lane& lane) {
  begin_gradient(tape, gradient + image * shape_.features(), image, lane);
  for (std::size_t i = layers().size(); i-- > 0;) {
    const ImageShape& out = layers()[i].out;
    add_rows_rounded(lane.gradient.data() + margin(), out.height * pitch_, out.channels,
                     lane.bias_sums[i].data());
    const std::uint16_t* input = image_of(tape.activations[i], image);
    if (i == 0)
      return first_weights(input, lane);
    weights(i, input, lane);
    to_input(i, input, lane);
  }
}

void DirectEncoder::backward(const EncoderShape::Tensors& parameters,
                             const EncoderShape::Tensors& gradients, const EncoderTape& tape,
                             const at::Tensor& gradient) {
  const std::int64_t batch = tape.images.size(0);
  pack(parameters, true);
  lanes_for(batch);
  for (Lane& lane : lanes_)
    prepare(lane);
  const at::Tensor dense = gradient.contiguous();
  over_lanes(batch, [&](Lane& lane, std::int64_t image) {
    backward_image(tape, dense.const_data_ptr<float>(), image, lane);
  });
  for (std::size_t i = 0; i < layers().size(); ++i) {
    const Convolution& c = layers()[i];
    at::Tensor weight = gradients.weight[i], bias = gradients.bias[i];
    weight.zero_();
    bias.zero_();
    for (Lane& lane : lanes_) {
      bias.add_(at::from_blob(lane.bias_sums[i].data(), bias.sizes()));
      if (i > 0) {
        weight.add_(at::from_blob(lane.weight_sums[i].data(), weight.sizes()));
        continue;
      }
      const std::int64_t channels = c.in.channels;
      const at::Tensor lines =
          at::from_blob(lane.weight_sums[0].data(), {c.kernel, run(), c.out.channels})
              .narrow(1, 0, c.kernel * channels)
              .reshape({c.kernel, c.kernel, channels, c.out.channels});
      weight.add_(lines.permute({2, 0, 1, 3}).reshape(weight.sizes()));
    }
  }
}

} // namespace

bool has_direct_encoder(const EncoderShape& shape) {
  bool fits = shape.activation() == Activation::relu;
  for (std::size_t i = 0; i < shape.layers().size(); ++i) {
    const Convolution& c = shape.layers()[i];
    fits = fits && c.out.channels % kTogether == 0 && (i == 0 || (c.stride == 1 && c.kernel == 3));
  }
  return fits;
}

std::unique_ptr<Encoder> make_direct_encoder(const EncoderShape& shape) {
  return std::make_unique<DirectEncoder>(shape);
}

} // namespace troupe::learner
