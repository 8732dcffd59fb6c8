#include "learner/nn/parameter_layout.hpp"

#include <numeric>
#include <sstream>
#include <utility>

#include <ATen/core/Generator.h>

#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {
namespace {

std::string shape_text(const at::Tensor& tensor) {
  std::ostringstream text;
  text << c10::toString(tensor.scalar_type()) << tensor.sizes();
  return text.str();
}

} // namespace

std::size_t ParameterLayout::add(std::string name, std::vector<std::int64_t> stored,
                                 std::vector<std::int64_t> order) {
  const std::int64_t size =
      std::accumulate(stored.begin(), stored.end(), std::int64_t{1}, std::multiplies<>());
  entries_.push_back({std::move(name), std::move(stored), std::move(order), count_, size});
  count_ += size;
  return entries_.size() - 1;
}

at::Tensor ParameterLayout::stored_view(const at::Tensor& flat, std::size_t entry) const {
  const Entry& e = entries_.at(entry);
  return flat.narrow(0, e.offset, e.size).view(e.stored);
}

at::Tensor ParameterLayout::shown_view(const at::Tensor& flat, std::size_t entry) const {
  const at::Tensor view = stored_view(flat, entry);
  const Entry& e = entries_.at(entry);
  return e.order.empty() ? view : view.permute(e.order);
}

void ParameterLayout::show(const at::Tensor& flat, const std::string& prefix,
                           TensorMap& out) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    out[prefix + entries_[i].name] = shown_view(flat, i);
}

std::string ParameterLayout::first_not_finite(const at::Tensor& flat) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (!all_finite(stored_view(flat, i)))
      return entries_[i].name;
  return {};
}

void orthogonal(at::Tensor stored, double gain, at::Generator& generator) {
  const std::int64_t rows = stored.size(0);
  const std::int64_t columns = stored.size(1);
  const at::Tensor normal = at::randn({std::max(rows, columns), std::min(rows, columns)}, generator,
                                      at::TensorOptions(at::kDouble));
  auto [q, r] = at::linalg_qr(normal);
  q = q * at::diagonal(r).sign();
  stored.copy_((rows >= columns ? q : q.t()) * gain);
}

void check_by_name(const std::string& what, const TensorMap& source, const TensorMap& target) {
  constexpr int kNamed = 3; // problems reported in full, so that the line stays short
  std::string told;
  int problems = 0;
  const auto add = [&](const std::string& problem) {
    if (++problems <= kNamed)
      told += (told.empty() ? "" : "; ") + problem;
  };
  for (const auto& [name, tensor] : target) {
    const auto found = source.find(name);
    if (found == source.end())
      add(name + " " + shape_text(tensor) + " is missing");
    else if (found->second.sizes() != tensor.sizes()
             || found->second.scalar_type() != tensor.scalar_type())
      add(name + " is " + shape_text(found->second) + ", must be " + shape_text(tensor));
  }
  for (const auto& [name, tensor] : source)
    if (target.find(name) == target.end())
      add(name + " " + shape_text(tensor) + " is not part of it");
  if (problems > 0)
    throw std::runtime_error(
        what + " do not fit this network: " + told
        + (problems > kNamed ? "; and " + std::to_string(problems - kNamed) + " more" : "")
        + ": load them with the experiment and the build they were saved by");
}

void copy_by_name(const TensorMap& source, const TensorMap& target) {
  for (const auto& [name, tensor] : target)
    at::Tensor(tensor).copy_(source.at(name));
}

void replace_by_name(const TensorMap& parameters, const TensorMap& live_parameters,
                     const TensorMap& state, const TensorMap& live_state) {
  check_by_name("parameters", parameters, live_parameters);
  check_by_name("optimizer state", state, live_state);
  copy_by_name(parameters, live_parameters);
  copy_by_name(state, live_state);
}

} // namespace troupe::learner
