#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

namespace troupe::learner {

struct SnganShape {
  std::int64_t size = 32; // height and width: 32, 64, 128
  std::int64_t classes = 1;
  std::int64_t latent = 128;
  std::int64_t generator_channels = 0; // 0: as in the papers
  std::int64_t critic_channels = 0;
  bool tapered = false; // also at 32; 64 and 128 always are
};

class GeneratorBlockImpl;
class CriticBlockImpl;

/// Generates pictures from noise and class: a linear layer to 4x4, residual blocks that double the
/// size, each with conditional batch norm, and tanh. Weights are drawn by Glorot's rule.
class SnganGeneratorImpl : public torch::nn::Module {
public:
  SnganGeneratorImpl(const SnganShape& shape, at::Generator generator);
  /// [batch, latent], int64 [batch] -> [batch, 3, size, size] in (-1, 1).
  at::Tensor forward(const at::Tensor& noise, const at::Tensor& labels);

private:
  torch::nn::Linear first_{nullptr};
  std::vector<std::shared_ptr<GeneratorBlockImpl>> blocks_;
  torch::nn::BatchNorm2d norm_{nullptr};
  torch::nn::Conv2d last_{nullptr};
};
TORCH_MODULE(SnganGenerator);

/// Scores pictures of a class: residual blocks that halve the size, a sum over the pixels and a
/// linear layer, plus the product with the class's vector (the projection). It is meant to be used
/// with SpectralNorm, applied before each pass.
class SnganCriticImpl : public torch::nn::Module {
public:
  SnganCriticImpl(const SnganShape& shape, at::Generator generator);
  /// [batch, 3, size, size], int64 [batch] -> scores [batch].
  at::Tensor forward(const at::Tensor& pictures, const at::Tensor& labels);

private:
  std::vector<std::shared_ptr<CriticBlockImpl>> blocks_;
  torch::nn::Linear score_{nullptr};
  torch::nn::Embedding classes_{nullptr}; // none for a single class
};
TORCH_MODULE(SnganCritic);

} // namespace troupe::learner
