#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

namespace troupe::learner {

struct InceptionOptions {
  std::int64_t classes = 1000;
  bool auxiliary = true;        // the second head, which training alone uses
  bool transform_input = false; // pictures come normalised by ImageNet's means and deviations, the
                                // weights want 0.5 and 0.5
  double dropout = 0.5;         // in front of the last layer
  std::optional<at::Generator> generator = {}; // of the first weights; none: LibTorch's default
};

struct InceptionOutputs {
  at::Tensor logits;    // [batch, classes]
  at::Tensor auxiliary; // likewise; undefined in evaluation and without that head
};

/// Height and width from which Inception-v3 has something to pool, and its auxiliary head.
constexpr std::int64_t kInceptionPixels = 75;
constexpr std::int64_t kInceptionAuxiliaryPixels = 299;

/// Inception-v3 (Szegedy et al. 2016). Names and shapes of parameters and buffers are torchvision's
/// (Conv2d_1a_3x3.conv.weight, Mixed_7c.branch3x3_2a.bn.bias, AuxLogits.fc.weight, fc.bias), so its
/// weights load. One thread at a time.
class InceptionImpl : public torch::nn::Module {
public:
  explicit InceptionImpl(const InceptionOptions& options = {});
  ~InceptionImpl() override;

  /// [batch, 3, height, width], at least kInceptionPixels, or kInceptionAuxiliaryPixels to train
  /// with the auxiliary head.
  InceptionOutputs forward(at::Tensor pictures);

  /// What the last layer sees (before dropout), [batch, feature_size()], and its logits.
  at::Tensor features(at::Tensor pictures) { return trunk(std::move(pictures), nullptr); }
  at::Tensor head(const at::Tensor& features) { return fc_->forward(features); }
  static constexpr std::int64_t feature_size() { return 2048; }

  /// What the next forward passes drop depends on this alone. Without it: on LibTorch's default
  /// generator.
  void seed_dropout(std::uint64_t seed);

private:
  struct Stage;
  at::Tensor trunk(at::Tensor x, at::Tensor* auxiliary);
  at::Tensor dropped(const at::Tensor& x) const;
  void build_stages();
  void initialise();

  InceptionOptions options_;
  std::optional<at::Generator> dropout_;
  std::vector<Stage> stages_; // in order
  std::shared_ptr<torch::nn::Module> auxiliary_;
  torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(Inception);

} // namespace troupe::learner
