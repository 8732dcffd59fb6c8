#include "learner/workloads/checked_batch.hpp"

#include <span>
#include <stdexcept>

#include "collectives/nest/nest.hpp"
#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {

using collectives::Nest;

const at::Tensor& tensor_of(const TensorMap& batch, const std::string& name) {
  const auto found = batch.find(name);
  if (found == batch.end())
    throw std::invalid_argument("the batch has no tensor \"" + name + "\"");
  return found->second;
}

void check_rows(const at::Tensor& input, const std::string& name,
                const std::vector<std::int64_t>& shape, const std::string& when) {
  const auto type = input.scalar_type();
  const bool pictures = shape.size() == 3;
  if (input.dim() != static_cast<std::int64_t>(shape.size()) + 1 || input.size(0) < 1
      || input.sizes().slice(1) != at::IntArrayRef(shape)
      || (type != at::kFloat && type != at::kDouble && !(pictures && type == at::kByte)))
    throw std::invalid_argument("batch tensor \"" + name + "\" is " + Nest(input).describe()
                                + "; it must be float32" + (pictures ? " or uint8" : "")
                                + " [rows] + " + c10::str(at::IntArrayRef(shape)));
  if (!all_finite(input))
    throw std::runtime_error("NaN or infinity in batch tensor \"" + name + "\" at " + when
                             + ": it came from the data set");
}

const at::Tensor& checked_labels(const TensorMap& batch, std::int64_t rows, std::int64_t classes,
                                 const std::string& when) {
  const auto& labels = tensor_of(batch, "label");
  if (labels.dim() != 1 || labels.scalar_type() != at::kLong || labels.size(0) != rows)
    throw std::invalid_argument("batch tensor \"label\" is " + Nest(labels).describe()
                                + "; it must be int64 [" + std::to_string(rows) + "]");
  if (!labels.is_cpu())
    return labels;
  const auto dense = labels.contiguous();
  for (const auto label :
       std::span(dense.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(rows)))
    if (label < 0 || label >= classes)
      throw std::runtime_error("label " + std::to_string(label) + " at " + when + " is not in [0, "
                               + std::to_string(classes)
                               + "); the data set has more classes than it declares");
  return labels;
}

} // namespace troupe::learner
