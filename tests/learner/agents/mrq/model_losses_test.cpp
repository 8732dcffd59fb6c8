#include "tests/doctest_torch.hpp"

#include "learner/agents/predictive/model_losses.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe::learner;
using troupe::tests::uniform;

namespace {

/// What a loss returns and writes, in float64.
struct LossResult {
  at::Tensor value, gradient;
};

/// Applies `loss` to [3, 4, 9] views of wider tensors, in `type`.
template <class F>
LossResult result_in(at::ScalarType type, F&& loss) {
  const auto view = [&](std::uint64_t seed) {
    return uniform({12, 14}, seed).to(type).unflatten(0, {3, 4}).narrow(2, 1, 9);
  };
  const at::Tensor weight = uniform({3, 4}, 3).abs().to(type);
  at::Tensor gradient = view(4);
  const at::Tensor value = loss(view(1), view(2), weight, gradient);
  return {value.to(at::kDouble), gradient.to(at::kDouble)};
}

template <class F>
void check_kernels(F&& loss, double tolerance) {
  const LossResult kernels = result_in(at::kFloat, loss), wanted = result_in(at::kDouble, loss);
  CHECK(at::allclose(kernels.value, wanted.value, tolerance, tolerance));
  CHECK(at::allclose(kernels.gradient, wanted.gradient, tolerance, tolerance));
}

} // namespace

TEST_CASE("A model's losses are equal by kernels and by LibTorch in float64") {
  check_kernels(
      [](const at::Tensor& x, const at::Tensor& target, const at::Tensor& weight,
         at::Tensor& gradient) { return squared_error(x, target, weight, 0.7, gradient); },
      1e-5);
  check_kernels(
      [](const at::Tensor& x, const at::Tensor& target, const at::Tensor& weight,
         at::Tensor& gradient) {
        return softmax_error(x, target.softmax(2).contiguous(), weight, 0.7, gradient);
      },
      1e-5);
  check_kernels(
      [](const at::Tensor& x, const at::Tensor& target, const at::Tensor& weight,
         at::Tensor& gradient) {
        const auto products = x.scalar_type() == at::kDouble ? at::kDouble : at::kBFloat16;
        return contrast_loss(x, target, weight,
                             {.temperature = 0.2, .weight = 0.5, .products = products}, gradient);
      },
      2e-2);
}
