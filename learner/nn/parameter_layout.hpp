#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// The positions of a network's parameters in one flat tensor. Weights are stored as the products
/// want them ([inputs, outputs]) and shown in a checkpoint as PyTorch has them ([outputs, inputs]):
/// `order` permutes the stored dimensions into the shown ones.
class ParameterLayout {
public:
  struct Entry {
    std::string name;
    std::vector<std::int64_t> stored;
    std::vector<std::int64_t> order;
    std::int64_t offset = 0;
    std::int64_t size = 0;
  };

  /// Returns the number of the entry.
  std::size_t add(std::string name, std::vector<std::int64_t> stored,
                  std::vector<std::int64_t> order = {});

  std::int64_t count() const { return count_; }
  const std::vector<Entry>& entries() const { return entries_; }

  at::Tensor stored_view(const at::Tensor& flat, std::size_t entry) const;
  at::Tensor shown_view(const at::Tensor& flat, std::size_t entry) const;

  /// Adds "<prefix><name>" -> shown view of `flat` for every entry.
  void show(const at::Tensor& flat, const std::string& prefix, TensorMap& out) const;

  /// Name of the first entry of `flat` that is not finite; empty when all are.
  std::string first_not_finite(const at::Tensor& flat) const;

private:
  std::vector<Entry> entries_;
  std::int64_t count_ = 0;
};

/// Fills the weights (not biases) with orthogonal matrices times `gain`; `stored` is [inputs,
/// outputs].
void orthogonal(at::Tensor stored, double gain, at::Generator& generator);

/// Throws std::runtime_error that lists what `source` lacks, has too much, or has in another shape
/// or type than `target`. `what`: "parameters", for the message.
void check_by_name(const std::string& what, const TensorMap& source, const TensorMap& target);
/// Copies every tensor of `source` into the one of the same name; check_by_name first.
void copy_by_name(const TensorMap& source, const TensorMap& target);
/// Copies a checkpoint's parameters and optimizer state into the live ones. Throws as
/// check_by_name(), and changes nothing then.
void replace_by_name(const TensorMap& parameters, const TensorMap& live_parameters,
                     const TensorMap& state, const TensorMap& live_state);

} // namespace troupe::learner
