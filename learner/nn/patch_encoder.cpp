#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "learner/nn/encoder.hpp"
#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/parallel.hpp"
#include "learner/nn/patches.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kImages = 8;          // processed together, so that they stay in cache
constexpr std::int64_t kPatchFloats = 32768; // of the lines that make a chunk

using Floats = std::vector<float>;

std::int64_t panels(std::int64_t columns) {
  const std::int64_t step = kernel_table().panel_columns;
  return (columns + step - 1) / step * step;
}

/// Scratch memory of one thread.
struct Lane {
  Floats image;
  std::vector<std::uint8_t> shifted;
  Floats patches;
  Floats packed;
  std::vector<Floats> gradients;        // per layer: gradient of its output, for a block of images
  std::vector<Floats> weight_gradients; // per layer: sums of this lane
  std::vector<Floats> bias_gradients;
  Floats bias_part;
};

void grow(Floats& floats, std::int64_t count) {
  if (static_cast<std::int64_t>(floats.size()) < count)
    floats.resize(static_cast<std::size_t>(count));
}

/// Joins the frames of image `at` of the batch, without a shift.
void join_frames(const EncoderTape& tape, std::size_t at, std::int64_t size, float* out) {
  const std::size_t stack = tape.frames.size() / tape.shifts.drawn.size();
  const std::int64_t part = size / static_cast<std::int64_t>(stack);
  for (const std::byte* frame : tape.frames.subspan(at * stack, stack)) {
    kernel_table().bytes_to_float(reinterpret_cast<const std::uint8_t*>(frame), out, part,
                                  1.0f / 255.0f, -0.5f);
    out += part;
  }
}

class PatchEncoder : public Encoder {
public:
  explicit PatchEncoder(const EncoderShape& shape) : shape_(shape) {}
  std::string name() const override { return "float32 patches"; }
  void forward(const EncoderShape::Tensors& parameters, EncoderTape& tape) override;
  void backward(const EncoderShape::Tensors& parameters, const EncoderShape::Tensors& gradients,
                const EncoderTape& tape, const at::Tensor& gradient) override;

private:
  std::size_t prepare_lanes(std::int64_t batch);
  template <class F>
  void over_lanes(std::int64_t batch, const F& run);
  template <class F>
  void over_chunks(std::size_t layer, const EncoderTape& tape, std::int64_t first,
                   std::int64_t count, Lane& lane, const F& run);
  void forward_block(const EncoderShape::Tensors& parameters, EncoderTape& tape, std::int64_t first,
                     std::int64_t count, Lane& lane);
  void backward_block(const EncoderTape& tape, const float* gradient, std::int64_t first,
                      std::int64_t count, Lane& lane);
  void spread_to_input(std::size_t layer, std::int64_t count, Lane& lane);

  EncoderShape shape_;
  std::vector<Lane> lanes_;
  std::vector<Floats> packed_;            // weights per layer
  std::vector<Floats> packed_transposed_; // for the gradient of the input
};

std::size_t PatchEncoder::prepare_lanes(std::int64_t batch) {
  const auto threads = static_cast<std::int64_t>(at::get_num_threads());
  const std::int64_t wanted = std::clamp<std::int64_t>(batch / kImages, 1, threads);
  if (static_cast<std::int64_t>(lanes_.size()) < wanted)
    lanes_.resize(static_cast<std::size_t>(wanted));
  return static_cast<std::size_t>(wanted);
}

/// Divides the batch into equal parts, one per lane, and calls run(lane, first, last) for each.
template <class F>
void PatchEncoder::over_lanes(std::int64_t batch, const F& run) {
  const auto lanes = static_cast<std::int64_t>(prepare_lanes(batch));
  const auto part = [&](std::int64_t lane) {
    run(lanes_[static_cast<std::size_t>(lane)], batch * lane / lanes, batch * (lane + 1) / lanes);
  };
  if (lanes == 1)
    return part(0);
  over_threads(lanes, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t lane = begin; lane < end; ++lane)
      part(lane);
  });
}

/// Calls run(row, rows) for each chunk: lane.patches then holds the patches of `rows` output pixels
/// of the block, beginning at `row`.
template <class F>
void PatchEncoder::over_chunks(std::size_t layer, const EncoderTape& tape, std::int64_t first,
                               std::int64_t count, Lane& lane, const F& run) {
  const Convolution& c = shape_.layers()[layer];
  const std::int64_t per_line = c.out.width * c.patch();
  const std::int64_t lines = c.out.height;
  const std::int64_t chunk = std::max<std::int64_t>(1, kPatchFloats / per_line);
  grow(lane.patches, chunk * per_line);
  std::int64_t filled = 0;
  std::int64_t row = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* source = nullptr;
    if (layer == 0) {
      grow(lane.image, c.in.size());
      lane.shifted.resize(static_cast<std::size_t>(c.in.size()));
      const auto at = static_cast<std::size_t>(first + i);
      if (tape.frames.empty())
        shift_image(tape.images.const_data_ptr<std::uint8_t>() + (first + i) * c.in.size(), c.in,
                    tape.shifts.drawn[at], lane.shifted.data(), lane.image.data());
      else
        join_frames(tape, at, c.in.size(), lane.image.data());
      source = lane.image.data();
    } else {
      source = tape.activations[layer - 1].const_data_ptr<float>() + (first + i) * c.in.size();
    }
    for (std::int64_t line = 0; line < lines; ++line) {
      line_patches(c, layer == 0, source, line, lane.patches.data() + filled * per_line);
      if (++filled == chunk || (line + 1 == lines && i + 1 == count)) {
        run(row, filled * c.out.width);
        row += filled * c.out.width;
        filled = 0;
      }
    }
  }
}

void PatchEncoder::forward_block(const EncoderShape::Tensors& parameters, EncoderTape& tape,
                                 std::int64_t first, std::int64_t count, Lane& lane) {
  const KernelTable& kernels = kernel_table();
  const bool elu = shape_.activation() == Activation::elu;
  for (std::size_t layer = 0; layer < shape_.layers().size(); ++layer) {
    const Convolution& c = shape_.layers()[layer];
    const std::int64_t channels = c.out.channels;
    float* out = tape.activations[layer].mutable_data_ptr<float>() + first * c.out.size();
    over_chunks(layer, tape, first, count, lane, [&](std::int64_t row, std::int64_t rows) {
      float* to = out + row * channels;
      kernels.multiply(lane.patches.data(), c.patch(), 1, packed_[layer].data(),
                       parameters.bias[layer].const_data_ptr<float>(), false, to, channels, rows,
                       channels, c.patch());
      (elu ? kernels.elu : kernels.relu)(to, rows * channels);
    });
  }
}

void PatchEncoder::forward(const EncoderShape::Tensors& parameters, EncoderTape& tape) {
  const KernelTable& kernels = kernel_table();
  const auto batch = static_cast<std::int64_t>(tape.shifts.drawn.size());
  const auto& layers = shape_.layers();
  packed_.resize(layers.size());
  tape.activations.resize(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Convolution& c = layers[i];
    grow(packed_[i], c.patch() * panels(c.out.channels));
    kernels.pack(parameters.weight[i].const_data_ptr<float>(), c.out.channels, 1, c.patch(),
                 c.out.channels, packed_[i].data());
    at::Tensor& activation = tape.activations[i];
    if (!activation.defined() || activation.size(0) != batch)
      activation = at::empty({batch, c.out.size()}, at::kFloat);
  }
  over_lanes(batch, [&](Lane& lane, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; i += kImages)
      forward_block(parameters, tape, i, std::min(kImages, last - i), lane);
  });
  tape.features = tape.activations.back();
}

/// Computes the gradient of a layer's input from that of its output, both for one block.
void PatchEncoder::spread_to_input(std::size_t layer, std::int64_t count, Lane& lane) {
  const Convolution& c = shape_.layers()[layer];
  Floats& input = lane.gradients[layer - 1];
  grow(input, kImages * c.in.size());
  std::fill_n(input.begin(), count * c.in.size(), 0.0f);
  const std::int64_t per_line = c.out.width * c.patch();
  const std::int64_t chunk =
      std::clamp<std::int64_t>(kPatchFloats / per_line, 1, c.out.height * count);
  grow(lane.patches, chunk * per_line);
  const std::int64_t lines = count * c.out.height;
  for (std::int64_t line = 0; line < lines; line += chunk) {
    const std::int64_t part = std::min(chunk, lines - line);
    kernel_table().multiply(lane.gradients[layer].data() + line * c.out.width * c.out.channels,
                            c.out.channels, 1, packed_transposed_[layer].data(), nullptr, false,
                            lane.patches.data(), c.patch(), part * c.out.width, c.patch(),
                            c.out.channels);
    for (std::int64_t k = 0; k < part; ++k)
      add_line_patches(c, lane.patches.data() + k * per_line, (line + k) % c.out.height,
                       input.data() + (line + k) / c.out.height * c.in.size());
  }
}

void PatchEncoder::backward_block(const EncoderTape& tape, const float* gradient,
                                  std::int64_t first, std::int64_t count, Lane& lane) {
  const KernelTable& kernels = kernel_table();
  const auto& layers = shape_.layers();
  const std::int64_t features = shape_.features();
  grow(lane.gradients.back(), kImages * features);
  std::memcpy(lane.gradients.back().data(), gradient + first * features,
              static_cast<std::size_t>(count * features) * sizeof(float));
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    const Convolution& c = layers[layer];
    const std::int64_t channels = c.out.channels;
    float* out = lane.gradients[layer].data();
    const auto undo =
        shape_.activation() == Activation::elu ? kernels.elu_backward : kernels.relu_backward;
    undo(tape.activations[layer].const_data_ptr<float>() + first * c.out.size(), out,
         lane.bias_part.data(), count * c.pixels(), channels);
    for (std::int64_t i = 0; i < channels; ++i)
      lane.bias_gradients[layer][static_cast<std::size_t>(i)] +=
          lane.bias_part[static_cast<std::size_t>(i)];
    over_chunks(layer, tape, first, count, lane, [&](std::int64_t row, std::int64_t rows) {
      const float* right = out + row * channels;
      if (channels != kernels.panel_columns) {
        grow(lane.packed, rows * panels(channels));
        kernels.pack(right, channels, 1, rows, channels, lane.packed.data());
        right = lane.packed.data();
      }
      kernels.multiply(lane.patches.data(), 1, c.patch(), right, nullptr, true,
                       lane.weight_gradients[layer].data(), channels, c.patch(), channels, rows);
    });
    if (layer > 0)
      spread_to_input(layer, count, lane);
  }
}

void PatchEncoder::backward(const EncoderShape::Tensors& parameters,
                            const EncoderShape::Tensors& gradients, const EncoderTape& tape,
                            const at::Tensor& gradient) {
  const auto& layers = shape_.layers();
  const std::int64_t batch = tape.images.size(0);
  packed_transposed_.resize(layers.size());
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const Convolution& c = layers[i];
    grow(packed_transposed_[i], c.out.channels * panels(c.patch()));
    kernel_table().pack(parameters.weight[i].const_data_ptr<float>(), 1, c.out.channels,
                        c.out.channels, c.patch(), packed_transposed_[i].data());
  }
  const std::size_t lanes = prepare_lanes(batch);
  for (std::size_t l = 0; l < lanes; ++l) {
    Lane& lane = lanes_[l];
    lane.gradients.resize(layers.size());
    lane.weight_gradients.resize(layers.size());
    lane.bias_gradients.resize(layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto channels = static_cast<std::size_t>(layers[i].out.channels);
      lane.weight_gradients[i].assign(static_cast<std::size_t>(layers[i].patch()) * channels, 0);
      lane.bias_gradients[i].assign(channels, 0);
      lane.bias_part.resize(channels);
    }
  }
  over_lanes(batch, [&](Lane& lane, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; i += kImages)
      backward_block(tape, gradient.const_data_ptr<float>(), i, std::min(kImages, last - i), lane);
  });
  for (std::size_t i = 0; i < layers.size(); ++i) {
    at::Tensor weight = gradients.weight[i];
    at::Tensor bias = gradients.bias[i];
    weight.zero_();
    bias.zero_();
    for (std::size_t l = 0; l < lanes; ++l) {
      weight.add_(at::from_blob(lanes_[l].weight_gradients[i].data(), weight.sizes()));
      bias.add_(at::from_blob(lanes_[l].bias_gradients[i].data(), bias.sizes()));
    }
  }
}

} // namespace

std::unique_ptr<Encoder> make_patch_encoder(const EncoderShape& shape) {
  return std::make_unique<PatchEncoder>(shape);
}

} // namespace troupe::learner
