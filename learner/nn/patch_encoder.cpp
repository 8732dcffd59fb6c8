#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "learner/nn/encoder.hpp"
#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/parallel.hpp"
#include "learner/nn/patch_products.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kImages = 8; // processed together, so that they stay in cache

/// Scratch memory of one thread.
template <class Element>
struct LaneMemory {
  Floats image;
  std::vector<std::uint8_t> shifted;
  Array<Element> elements;             // of an image
  std::vector<Array<Element>> patches; // per layer
  Array<Element> packed, scratch;
  Floats patch_gradients;
  std::vector<Floats> gradients;        // per layer: gradient of its output, for a block of images
  std::vector<Floats> weight_gradients; // per layer: sums of this lane
  std::vector<Floats> bias_gradients;
  Floats bias_part;
};

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

template <class Products>
class PatchEncoder : public Encoder {
public:
  explicit PatchEncoder(const EncoderShape& shape) : shape_(shape) {}
  std::string name() const override { return Products::kName; }
  void forward(const EncoderShape::Tensors& parameters, EncoderTape& tape) override;
  void backward(const EncoderShape::Tensors& parameters, const EncoderShape::Tensors& gradients,
                const EncoderTape& tape, const at::Tensor& gradient) override;

private:
  using Element = typename Products::Element;
  using Lane = LaneMemory<Element>;

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
  std::vector<Array<Element>> packed_;            // weights per layer
  std::vector<Array<Element>> packed_transposed_; // for the gradient of the input
};

template <class Products>
std::size_t PatchEncoder<Products>::prepare_lanes(std::int64_t batch) {
  const auto threads = static_cast<std::int64_t>(at::get_num_threads());
  const std::int64_t wanted = std::clamp<std::int64_t>(batch / kImages, 1, threads);
  if (static_cast<std::int64_t>(lanes_.size()) < wanted)
    lanes_.resize(static_cast<std::size_t>(wanted));
  for (Lane& lane : lanes_)
    lane.patches.resize(shape_.layers().size());
  return static_cast<std::size_t>(wanted);
}

/// Divides the batch into equal parts, one per lane, and calls run(lane, first, last) for each.
template <class Products>
template <class F>
void PatchEncoder<Products>::over_lanes(std::int64_t batch, const F& run) {
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

/// Calls run(row, rows) for each chunk: lane.patches[layer] then holds the patches of `rows` output
/// pixels of the block, beginning at `row`.
template <class Products>
template <class F>
void PatchEncoder<Products>::over_chunks(std::size_t layer, const EncoderTape& tape,
                                         std::int64_t first, std::int64_t count, Lane& lane,
                                         const F& run) {
  const Convolution& c = shape_.layers()[layer];
  const std::int64_t step = Products::row(c);
  const std::int64_t per_line = c.out.width * step;
  const std::int64_t lines = c.out.height;
  const std::int64_t chunk = std::max<std::int64_t>(1, Products::kChunk / per_line);
  Element* patches =
      grown(lane.patches[layer], rounded_up(chunk * c.out.width, Products::kRows) * step);
  std::int64_t filled = 0;
  std::int64_t row = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* source = nullptr;
    if (layer == 0) {
      grown(lane.image, c.in.size());
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
    const Element* elements = Products::elements(source, c.in.size(), lane.elements);
    for (std::int64_t line = 0; line < lines; ++line) {
      line_patches(c, layer == 0, elements, line, patches + filled * per_line, step);
      if (++filled == chunk || (line + 1 == lines && i + 1 == count)) {
        run(row, filled * c.out.width);
        row += filled * c.out.width;
        filled = 0;
      }
    }
  }
}

template <class Products>
void PatchEncoder<Products>::forward_block(const EncoderShape::Tensors& parameters,
                                           EncoderTape& tape, std::int64_t first,
                                           std::int64_t count, Lane& lane) {
  const KernelTable& kernels = kernel_table();
  const bool elu = shape_.activation() == Activation::elu;
  for (std::size_t layer = 0; layer < shape_.layers().size(); ++layer) {
    const Convolution& c = shape_.layers()[layer];
    const std::int64_t channels = c.out.channels;
    float* out = tape.activations[layer].mutable_data_ptr<float>() + first * c.out.size();
    over_chunks(layer, tape, first, count, lane, [&](std::int64_t row, std::int64_t rows) {
      float* to = out + row * channels;
      Products::forward(c, lane.patches[layer].data(), rows, packed_[layer],
                        parameters.bias[layer].const_data_ptr<float>(), to);
      (elu ? kernels.elu : kernels.relu)(to, rows * channels);
    });
  }
}

template <class Products>
void PatchEncoder<Products>::forward(const EncoderShape::Tensors& parameters, EncoderTape& tape) {
  const auto batch = static_cast<std::int64_t>(tape.shifts.drawn.size());
  const auto& layers = shape_.layers();
  packed_.resize(layers.size());
  tape.activations.resize(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Convolution& c = layers[i];
    Products::pack(parameters.weight[i].const_data_ptr<float>(), c, packed_[i]);
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
template <class Products>
void PatchEncoder<Products>::spread_to_input(std::size_t layer, std::int64_t count, Lane& lane) {
  const Convolution& c = shape_.layers()[layer];
  Floats& input = lane.gradients[layer - 1];
  grown(input, kImages * c.in.size());
  std::fill_n(input.begin(), count * c.in.size(), 0.0f);
  const std::int64_t per_line = c.out.width * c.patch();
  const std::int64_t chunk =
      std::clamp<std::int64_t>(Products::kChunk / per_line, 1, c.out.height * count);
  float* patches = grown(lane.patch_gradients, chunk * per_line);
  const std::int64_t lines = count * c.out.height;
  for (std::int64_t line = 0; line < lines; line += chunk) {
    const std::int64_t part = std::min(chunk, lines - line);
    Products::input_gradient(c, lane.gradients[layer].data() + line * c.out.width * c.out.channels,
                             part * c.out.width, packed_transposed_[layer], patches, lane.scratch);
    for (std::int64_t k = 0; k < part; ++k)
      add_line_patches(c, patches + k * per_line, (line + k) % c.out.height,
                       input.data() + (line + k) / c.out.height * c.in.size());
  }
}

template <class Products>
void PatchEncoder<Products>::backward_block(const EncoderTape& tape, const float* gradient,
                                            std::int64_t first, std::int64_t count, Lane& lane) {
  const KernelTable& kernels = kernel_table();
  const auto& layers = shape_.layers();
  const std::int64_t features = shape_.features();
  std::memcpy(grown(lane.gradients.back(), kImages * features), gradient + first * features,
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
      Products::weight_gradient(c, lane.patches[layer].data(), rows, out + row * channels,
                                lane.weight_gradients[layer].data(), lane.packed, lane.scratch);
    });
    if (layer > 0)
      spread_to_input(layer, count, lane);
  }
}

template <class Products>
void PatchEncoder<Products>::backward(const EncoderShape::Tensors& parameters,
                                      const EncoderShape::Tensors& gradients,
                                      const EncoderTape& tape, const at::Tensor& gradient) {
  const auto& layers = shape_.layers();
  const std::int64_t batch = tape.images.size(0);
  packed_transposed_.resize(layers.size());
  for (std::size_t i = 1; i < layers.size(); ++i) {
    Products::pack_transposed(parameters.weight[i].const_data_ptr<float>(), layers[i],
                              packed_transposed_[i]);
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
      weight.add_(Products::sum_by_patch(lanes_[l].weight_gradients[i].data(), layers[i]));
      bias.add_(at::from_blob(lanes_[l].bias_gradients[i].data(), bias.sizes()));
    }
  }
}

} // namespace

std::unique_ptr<Encoder> make_patch_encoder(const EncoderShape& shape) {
  return std::make_unique<PatchEncoder<WholeProducts>>(shape);
}

std::unique_ptr<Encoder> make_rounded_encoder(const EncoderShape& shape) {
  return std::make_unique<PatchEncoder<RoundedProducts>>(shape);
}

} // namespace troupe::learner
