#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "learner/workloads/classifier_network.hpp"

namespace troupe::learner {

struct InceptionOptions {
  std::int64_t classes = 1000;
  bool auxiliary = true;                       // the second head, used only in training
  double dropout = 0.5;                        // before the last layer
  std::optional<at::Generator> generator = {}; // for the initial weights; none: LibTorch's default
};

/// Minimum height and width of pictures for Inception-v3, and for its auxiliary head: smaller ones
/// leave nothing to pool.
constexpr std::int64_t kInceptionPixels = 75;
constexpr std::int64_t kInceptionAuxiliaryPixels = 299;

/// Inception-v3 (Szegedy et al. 2016). Names and shapes of parameters and buffers are torchvision's
/// (Conv2d_1a_3x3.conv.weight, Mixed_7c.branch3x3_2a.bn.bias, AuxLogits.fc.weight, fc.bias), so
/// that its weights can be loaded. One thread at a time.
class InceptionImpl : public torch::nn::Module {
public:
  explicit InceptionImpl(const InceptionOptions& options = {});
  ~InceptionImpl() override;

  /// `pictures` are [batch, 3, height, width], with at least kInceptionPixels, or
  /// kInceptionAuxiliaryPixels to train with the auxiliary head.
  ClassifierOutputs forward(at::Tensor pictures);

  /// features() returns the input of the last layer before dropout, [batch, feature_size()]; head()
  /// returns the logits for it.
  at::Tensor features(at::Tensor pictures) { return trunk(std::move(pictures), nullptr); }
  at::Tensor head(const at::Tensor& features) { return fc_->forward(features); }
  static constexpr std::int64_t feature_size() { return 2048; }

  /// The dropout of the next forward passes depends only on this seed. Without a call, it uses
  /// LibTorch's default generator.
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
