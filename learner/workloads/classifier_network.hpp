#pragma once

#include <memory>

#include <torch/nn/module.h>

#include "learner/workloads/classifier.hpp"

namespace troupe::learner {

struct ClassifierOutputs {
  at::Tensor logits;    // [batch, classes]
  at::Tensor auxiliary; // likewise, of a second head in training; else undefined
};

/// A network that classifies, whichever it is. One thread at a time.
class ClassifierNetwork {
public:
  virtual ~ClassifierNetwork() = default;
  virtual torch::nn::Module& module() = 0;
  virtual ClassifierOutputs forward(const at::Tensor& input) = 0;
  /// What the last layer sees, [batch, n], and the logits of that.
  virtual at::Tensor features(const at::Tensor& input) = 0;
  virtual at::Tensor head(const at::Tensor& features) = 0;
  /// What the next forward passes drop depends on this alone.
  virtual void seed_dropout(std::uint64_t) {}
};

/// Throws std::invalid_argument naming a model that is not known, or pictures too small for it.
void check_model(const ClassifierConfig& config, const ClassifierSpec& spec);
/// On the CPU in float32; the initial weights depend only on `seed`.
std::unique_ptr<ClassifierNetwork> make_network(const ClassifierConfig& config,
                                                const ClassifierSpec& spec, std::uint64_t seed);

} // namespace troupe::learner
