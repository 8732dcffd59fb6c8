#include "learner/agents/parts/choices.hpp"

#include <cmath>
#include <stdexcept>

#include <torch/types.h>

#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {

std::int64_t one_choice(const replay::TransitionSpec& transitions, const std::string& agent) {
  if (transitions.action_size != 1 || transitions.choices_of(0) == 0)
    throw std::invalid_argument(
        "the action has " + std::to_string(transitions.action_size) + " numbers, "
        + (transitions.action_choices.empty() ? "all continuous" : "some of them choices") + "; "
        + agent + " takes one choice: choose an agent for such actions (`troupe list agents`)");
  return transitions.choices_of(0);
}

void require_continuous(const replay::TransitionSpec& transitions, const std::string& agent) {
  if (transitions.action_size < 1)
    throw std::invalid_argument("the action has no dimension; " + agent + " needs at least 1");
  for (int i = 0; i < transitions.action_size; ++i)
    if (const std::int64_t n = transitions.choices_of(static_cast<std::size_t>(i)); n != 0)
      throw std::invalid_argument(
          "number " + std::to_string(i) + " of the action is a choice of " + std::to_string(n)
          + "; " + agent
          + " takes continuous actions: choose an agent for choices (`troupe list agents`)");
}

void require_one_array(const replay::TransitionSpec& transitions, const std::string& agent) {
  if (!transitions.vectors.empty())
    throw std::invalid_argument("environment.observations shows '" + transitions.frame.name
                                + "' and '" + transitions.vectors[0].name + "'; " + agent
                                + " takes one array: name one of them, or choose an agent for "
                                  "pixels and states together (`troupe list agents`)");
}

void check_choices(const at::Tensor& choices, std::int64_t n, std::int64_t update,
                   const char* name) {
  const at::Tensor dense = choices.contiguous();
  const float* first = dense.const_data_ptr<float>();
  for (std::int64_t i = 0; i < dense.numel(); ++i)
    if (!(first[i] >= 0 && first[i] < static_cast<float>(n) && first[i] == std::floor(first[i])))
      throw std::runtime_error("row " + std::to_string(i) + " of batch tensor '" + name + "' is "
                               + std::to_string(first[i]) + " at update " + std::to_string(update)
                               + "; it must be a whole number from 0 to " + std::to_string(n - 1));
}

void require_finite_rows(const at::Tensor& outputs) {
  if (all_finite(outputs))
    return;
  for (std::int64_t row = 0; row < outputs.size(0); ++row)
    if (!all_finite(outputs[row]))
      throw std::runtime_error("NaN or infinity in the policy's action of row "
                               + std::to_string(row));
}

at::Tensor best_choices(const at::Tensor& values) {
  require_finite_rows(values);
  return values.argmax(1);
}

} // namespace troupe::learner
