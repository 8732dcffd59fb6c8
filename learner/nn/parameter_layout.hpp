#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// The positions of a network's parameters in one flat tensor. Weights are stored in the layout of
/// the products ([inputs, outputs]), and shown in checkpoints in PyTorch's layout ([outputs,
/// inputs]): `order` permutes the stored dimensions to the shown ones.
class ParameterLayout {
public:
  struct Entry {
    std::string name;
    std::vector<std::int64_t> stored;
    std::vector<std::int64_t> order;
    std::int64_t offset = 0;
    std::int64_t size = 0;
  };

  /// Returns the index of the entry.
  std::size_t add(std::string name, std::vector<std::int64_t> stored,
                  std::vector<std::int64_t> order = {});

  std::int64_t count() const { return count_; }
  const std::vector<Entry>& entries() const { return entries_; }

  at::Tensor stored_view(const at::Tensor& flat, std::size_t entry) const;
  at::Tensor shown_view(const at::Tensor& flat, std::size_t entry) const;

  /// Adds a view of `flat` in the shown layout under "<prefix><name>" for every entry.
  void show(const at::Tensor& flat, const std::string& prefix, TensorMap& out) const;

  /// Returns the name of the first entry of `flat` that is not finite, or "" if all are finite.
  std::string first_not_finite(const at::Tensor& flat) const;

private:
  std::vector<Entry> entries_;
  std::int64_t count_ = 0;
};

/// Fills the weights (not biases) with orthogonal matrices times `gain`. `stored` is [inputs,
/// outputs].
void orthogonal(at::Tensor stored, double gain, at::Generator& generator);

/// Throws std::runtime_error that lists the tensors that are missing in `source`, superfluous, or
/// of another shape or type than in `target`. `what` describes them in the message, for example
/// "parameters".
void check_by_name(const std::string& what, const TensorMap& source, const TensorMap& target);
/// Copies every tensor of `source` to the tensor with the same name. Call check_by_name() first.
void copy_by_name(const TensorMap& source, const TensorMap& target);
/// Copies a checkpoint's parameters and optimizer state to the live ones. Throws the exceptions of
/// check_by_name(), and then changes nothing.
void replace_by_name(const TensorMap& parameters, const TensorMap& live_parameters,
                     const TensorMap& state, const TensorMap& live_state);

} // namespace troupe::learner
