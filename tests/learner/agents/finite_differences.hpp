#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include "learner/agents/agent.hpp"
#include "tests/doctest_torch.hpp"

namespace troupe::tests {

/// Compares the gradient of an agent's first update on `batch`, in float64 and without clipping,
/// with finite differences of the loss in its metrics, for the first and the last element of each
/// parameter. The agent's learning rate must be tiny. `prepare` may change the initial parameters.
/// Returns the number of elements compared.
inline int check_gradient(
    const learner::Agent& agent, const replay::TransitionSpec& spec,
    const learner::TensorMap& batch,
    const std::function<double(learner::Metrics& metrics, const std::string& parameter)>& loss_of,
    const std::function<void(const learner::TensorMap& parameters)>& prepare = {}) {
  learner::ReplicaContext context(nullptr, 3);
  const auto fresh = [&] {
    at::set_num_threads(1); // tests run in parallel
    auto replica = agent.make_replica(spec);
    replica->build(context);
    if (prepare)
      prepare(replica->parameters());
    return replica;
  };
  const auto replica = fresh();
  replica->step_fn(context, batch);
  // Adam's first moment is then a tenth of the gradient.
  const std::string prefix = "adam.exp_avg.";
  int compared = 0;
  for (const auto& [name, moment] : replica->optimizer_state()) {
    if (!name.starts_with(prefix))
      continue;
    const std::string parameter = name.substr(prefix.size());
    for (const std::int64_t at : {std::int64_t{0}, moment.numel() - 1}) {
      const auto loss = [&](double change) {
        const auto other = fresh();
        at::Tensor shown = other->parameters().at(parameter);
        std::vector<std::int64_t> index;
        std::int64_t left = at;
        for (std::int64_t d = shown.dim() - 1; d >= 0; --d) {
          index.insert(index.begin(), left % shown.size(d));
          left /= shown.size(d);
        }
        for (const std::int64_t i : index)
          shown = shown[i];
        shown.add_(change);
        learner::Metrics metrics = other->step_fn(context, batch);
        return loss_of(metrics, parameter);
      };
      const double expected = (loss(1e-6) - loss(-1e-6)) / 2e-6;
      const double got = 10 * moment.contiguous().view({-1})[at].item<double>();
      CAPTURE(parameter);
      CHECK(got == doctest::Approx(expected).epsilon(1e-4));
      ++compared;
    }
  }
  return compared;
}

} // namespace troupe::tests
