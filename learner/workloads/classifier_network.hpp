#pragma once

#include <memory>

#include <torch/nn/module.h>

#include "learner/workloads/classifier.hpp"

namespace troupe::learner {

struct ClassifierOutputs {
  at::Tensor logits;    // [batch, classes]
  at::Tensor auxiliary; // [batch, classes], of a second head in training; else undefined
};

/// A network for classification, of any architecture. One thread at a time.
class ClassifierNetwork {
public:
  virtual ~ClassifierNetwork() = default;
  virtual torch::nn::Module& module() = 0;
  virtual ClassifierOutputs forward(const at::Tensor& input) = 0;
  /// features() returns the input of the last layer, [batch, n]; head() returns the logits for it.
  virtual at::Tensor features(const at::Tensor& input) = 0;
  virtual at::Tensor head(const at::Tensor& features) = 0;
  /// The dropout of the next forward passes depends only on this seed.
  virtual void seed_dropout(std::uint64_t) {}
};

/// Throws std::invalid_argument naming an unknown model, or pictures too small for it.
void check_model(const ClassifierConfig& config, const ClassifierSpec& spec);
/// Makes the network on the CPU in float32. The initial weights depend only on `seed`.
std::unique_ptr<ClassifierNetwork> make_network(const ClassifierConfig& config,
                                                const ClassifierSpec& spec, std::uint64_t seed);

} // namespace troupe::learner
