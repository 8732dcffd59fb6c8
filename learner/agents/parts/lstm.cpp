#include "learner/agents/parts/lstm.hpp"

#include <cstring>
#include <stdexcept>
#include <vector>

#include <torch/types.h>

#include "learner/policy_graph/graph_layers.hpp"

namespace troupe::learner {

Lstm::Lstm(ParameterLayout& layout, const std::string& name, std::int64_t inputs, std::int64_t size)
    : bias_(layout.entries().size() + 1), size_(size) {
  inputs_ = Linear(layout, name + ".inputs", inputs, 4 * size);
  recurrent_ = layout.add(name + ".recurrent.weight", {size, 4 * size}, {1, 0});
}

void Lstm::initialise(const ParameterLayout& layout, const at::Tensor& flat,
                      at::Generator& generator) const {
  inputs_.initialise_orthogonal(layout, flat, generator, 1);
  orthogonal(layout.stored_view(flat, recurrent_), 1, generator);
  layout.stored_view(flat, bias_).narrow(0, size_, size_).fill_(1);
}

Lstm::Output Lstm::forward(const Leaves& leaves, const at::Tensor& x, const at::Tensor& state,
                           const at::Tensor& first) const {
  const std::int64_t steps = x.size(1);
  const at::Tensor& recurrent = leaves[recurrent_];
  // [steps, batch, 4 * size], so that the rows of a step are contiguous
  const at::Tensor given =
      inputs_.forward(leaves, x.transpose(0, 1).flatten(0, 1)).view({steps, x.size(0), 4 * size_});
  at::Tensor hidden = state.narrow(1, 0, size_);
  at::Tensor cell = state.narrow(1, size_, size_);
  std::vector<at::Tensor> made;
  for (std::int64_t t = 0; t < steps; ++t) {
    // On a GPU, reading whether an episode begins would cost more than the product.
    if (first.defined() && (!first.is_cpu() || first.select(1, t).any().item<bool>())) {
      const at::Tensor kept = (1 - first.select(1, t)).unsqueeze(1).to(x.options());
      hidden = hidden * kept;
      cell = cell * kept;
    }
    const at::Tensor gates = at::addmm(given[t], hidden, recurrent);
    const at::Tensor open = at::sigmoid(gates.narrow(1, 0, 3 * size_));
    cell = open.narrow(1, size_, size_) * cell
           + open.narrow(1, 0, size_) * at::tanh(gates.narrow(1, 3 * size_, size_));
    hidden = open.narrow(1, 2 * size_, size_) * at::tanh(cell);
    made.push_back(hidden);
  }
  return {at::stack(made, 1), at::cat({hidden, cell}, 1)};
}

void Lstm::describe(const Leaves& leaves, PolicyGraph& graph) const {
  graph.layers.push_back(
      {.kind = GraphLayer::Kind::lstm,
       .inputs = graph_width(graph),
       .outputs = size_,
       .weight = numbers_of(at::cat({inputs_.weight(leaves), leaves[recurrent_]})),
       .bias = numbers_of(inputs_.bias(leaves))});
}

at::Tensor acting_state(const Observations& observations, std::int64_t size) {
  if (static_cast<std::int64_t>(observations.state.size()) != observations.batch * size)
    throw std::invalid_argument("the policy got " + std::to_string(observations.state.size())
                                + " numbers of state for a batch of "
                                + std::to_string(observations.batch) + "; it remembers "
                                + std::to_string(size) + " of each episode");
  return at::from_blob(observations.state.data(), {observations.batch, size}, at::kFloat);
}

void store_state(const Observations& observations, const Exploration& exploration,
                 std::size_t extra) {
  if (exploration.extras.empty() || observations.state.empty())
    return;
  const auto batch = static_cast<std::size_t>(observations.batch);
  const std::size_t size = observations.state.size() / batch;
  for (std::size_t i = 0; i < batch; ++i)
    std::memcpy(exploration.extras[extra * batch + i], observations.state.data() + i * size,
                size * sizeof(float));
}

} // namespace troupe::learner
