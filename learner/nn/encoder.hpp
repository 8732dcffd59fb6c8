#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "learner/nn/kernels/ops.hpp"
#include "learner/nn/kernels/random_shift.hpp"
#include "learner/nn/parameter_layout.hpp"

namespace troupe::learner {

/// One convolution without padding, followed by EncoderShape::activation().
struct Convolution {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  ImageShape in;
  ImageShape out;

  std::int64_t patch() const { return in.channels * kernel * kernel; }
  std::int64_t pixels() const { return out.height * out.width; }
};

/// The convolutions of an encoder, for images of any size.
struct EncoderKind {
  struct Kernel {
    std::int64_t size;
    std::int64_t stride;
  };
  Activation activation;
  std::vector<Kernel> kernels;
};

/// Returns the kind "stride4" (4x4/4, then two 3x3/2) or "drq" (3x3/2, then three 3x3/1), both with
/// ReLU, or "elu" (three 3x3/2, then 3x3/1) with ELU. Throws std::invalid_argument naming `key` for
/// another kind.
EncoderKind encoder_kind(const std::string& kind, const std::string& key = "encoder");

/// The convolutions of an encoder and the layout of its parameters. Weights are stored as [patch,
/// channels]. A patch is ordered (channel, row, column) in the first layer, and (row, column,
/// channel) in the others. Checkpoints show PyTorch's [out, in, row, column]. Features are
/// flattened as [height, width, channels].
class EncoderShape {
public:
  EncoderShape() = default;
  /// Throws std::invalid_argument naming `key` for a kind that encoder_kind() does not know, and
  /// for an image that is too small.
  EncoderShape(const std::string& kind, const ImageShape& image, std::int64_t channels,
               const std::string& key = "encoder");

  void declare(ParameterLayout& layout, const std::string& prefix);
  struct Tensors {
    std::vector<at::Tensor> weight; // [patch, channels]
    std::vector<at::Tensor> bias;
  };
  Tensors bind(const ParameterLayout& layout, const at::Tensor& flat) const;
  /// Sets the weights orthogonal with ReLU's gain, and the biases to 0.
  void initialise(const ParameterLayout& layout, const at::Tensor& flat,
                  at::Generator& generator) const;

  const std::vector<Convolution>& layers() const { return layers_; }
  const ImageShape& image() const { return layers_.front().in; }
  std::int64_t features() const { return layers_.back().out.size(); }
  const std::string& kind() const { return kind_; }
  Activation activation() const { return activation_; }

private:
  std::string kind_;
  Activation activation_ = Activation::relu;
  std::vector<Convolution> layers_;
  std::size_t first_entry_ = 0;
};

/// Height and width of the smallest image that an encoder of this kind supports.
std::int64_t least_image(const std::string& kind);

/// The shift of each picture in a batch: `offsets`, int64 [batch, 2] of (y, x) on the pictures'
/// device; if they are undefined, `drawn`.
struct PictureShifts {
  std::vector<Shift> drawn;
  at::Tensor offsets;
};

/// Returns the shifts of pictures that do not move.
inline PictureShifts unmoved(std::int64_t pictures) {
  return {std::vector<Shift>(static_cast<std::size_t>(pictures)), {}};
}

/// What an encoder keeps of a forward pass for the backward pass.
struct EncoderTape {
  at::Tensor images; // uint8 [batch, channels, height, width]; the caller must not change them
  /// Used instead of `images` on the CPU without shifts: [batch, stack] parts of the channels, each
  /// read in place.
  std::span<const std::byte* const> frames;
  PictureShifts shifts;
  std::vector<at::Tensor> activations; // per layer, in the implementation's layout
  at::Tensor features;                 // [batch, features]
};

/// Returns EncoderTape::offsets for these shifts, on the CPU.
at::Tensor offsets_of(const std::vector<Shift>& shifts);

/// Runs the convolutions. One thread; the caller owns `tape` and the tensors.
class Encoder {
public:
  virtual ~Encoder() = default;
  /// Computes tape.features from tape.images shifted by tape.shifts. Keeps the activations for
  /// backward().
  virtual void forward(const EncoderShape::Tensors& parameters, EncoderTape& tape) = 0;
  /// `gradient` is that of the features. Writes the gradients of the parameters.
  virtual void backward(const EncoderShape::Tensors& parameters,
                        const EncoderShape::Tensors& gradients, const EncoderTape& tape,
                        const at::Tensor& gradient) = 0;
  virtual std::string name() const = 0;
};

/// An encoder in float32 on the CPU: patches and the kernels of kernel_table.hpp, a few images at a
/// time.
std::unique_ptr<Encoder> make_patch_encoder(const EncoderShape& shape);
/// The same with products of factors in bfloat16, where multiplies_rounded().
std::unique_ptr<Encoder> make_rounded_encoder(const EncoderShape& shape);
/// Convolutions in bfloat16 that read activations in place, where multiplies_rounded(); only if
/// has_direct_encoder().
std::unique_ptr<Encoder> make_direct_encoder(const EncoderShape& shape);
/// Whether all layers have ReLU and a multiple of 32 channels, and all but the first are 3x3/1.
bool has_direct_encoder(const EncoderShape& shape);
/// An encoder of LibTorch's convolutions, channels-last, in `type`; any device.
std::unique_ptr<Encoder> make_torch_encoder(const EncoderShape& shape, at::ScalarType type);
/// The fastest of these for "float32", "bfloat16", "float64" or "auto" (bfloat16 on GPUs, on
/// processors with AMX, and for "drq" on those with bfloat16 multiplication).
std::unique_ptr<Encoder> make_encoder(const EncoderShape& shape, const std::string& precision,
                                      at::Device device);

} // namespace troupe::learner
