#include "learner/nn/spectral_norm.hpp"

#include <stdexcept>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

namespace troupe::learner {
namespace {

constexpr double kLeastNorm = 1e-12;
constexpr int kFirstIterations = 15; // so that the first passes are normalised too

at::Tensor unit(const at::Tensor& vector) {
  return vector / vector.norm().clamp_min(kLeastNorm);
}

/// The layer's own handle of its weight, or null for other modules. The registered parameter is
/// another handle of the same tensor, and does not change.
at::Tensor* weight_of(torch::nn::Module& module) {
  if (auto* layer = module.as<torch::nn::Conv2dImpl>())
    return &layer->weight;
  if (auto* layer = module.as<torch::nn::LinearImpl>())
    return &layer->weight;
  if (auto* layer = module.as<torch::nn::EmbeddingImpl>())
    return &layer->weight;
  return nullptr;
}

} // namespace

SpectralNorm::SpectralNorm(torch::nn::Module& module, std::uint64_t seed) {
  const at::NoGradGuard guard;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto add = [&](torch::nn::Module& one) {
    auto* used = weight_of(one);
    if (!used)
      return;
    const auto matrix = used->flatten(1);
    auto u = unit(at::randn({matrix.size(0)}, generator, at::kFloat)).to(matrix.options());
    auto v = unit(at::mv(matrix.t(), u));
    for (int i = 0; i < kFirstIterations; ++i) {
      u = unit(at::mv(matrix, v));
      v = unit(at::mv(matrix.t(), u));
    }
    layers_.push_back({.weight = *used,
                       .used = used,
                       .u = one.register_buffer("weight_u", u),
                       .v = one.register_buffer("weight_v", v)});
  };
  add(module);
  for (const auto& item : module.named_modules("", false))
    add(*item.value());
  if (layers_.empty())
    throw std::invalid_argument("SpectralNorm: the module has no Conv2d, Linear or Embedding");
}

void SpectralNorm::apply(bool iterate) {
  for (auto& layer : layers_) {
    const auto matrix = layer.weight.flatten(1);
    if (iterate) {
      const at::NoGradGuard guard;
      layer.v.copy_(unit(at::mv(matrix.t(), layer.u)));
      layer.u.copy_(unit(at::mv(matrix, layer.v)));
    }
    // Copies, because the next iteration may run before this pass's backward.
    *layer.used = layer.weight / at::dot(layer.u.clone(), at::mv(matrix, layer.v.clone()));
  }
}

} // namespace troupe::learner
