#include "tests/doctest_torch.hpp"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>

#include "learner/nn/squashed_gaussian.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe::learner;
using namespace troupe::tests;

TEST_CASE("The density of squashed samples integrates to 1") {
  const at::Tensor raw = at::tensor({0.4, -0.7}, at::kDouble).view({1, 2});
  // The integral of p(a) da over (-1, 1), with a = tanh(0.4 + exp(-0.7) noise) on a fine grid of
  // noise.
  const at::Tensor noise = at::linspace(-9, 9, 20'001, at::kDouble).view({-1, 1});
  const auto sample = squashed_sample(raw.expand({noise.size(0), 2}), noise);
  const at::Tensor action = sample.action.view({-1});
  const at::Tensor density = sample.log_probability.exp();
  const at::Tensor widths = action.narrow(0, 1, 20'000) - action.narrow(0, 0, 20'000);
  const at::Tensor heights = (density.narrow(0, 1, 20'000) + density.narrow(0, 0, 20'000)) / 2;
  CHECK((widths * heights).sum().item<double>() == doctest::Approx(1).epsilon(1e-6));
}

TEST_CASE("The log probability is finite where tanh saturates at 1") {
  const at::Tensor raw = at::tensor({40.0, 1.0}, at::kFloat).view({1, 2});
  const auto sample = squashed_sample(raw, at::ones({1, 1}));
  CHECK(sample.action.item<float>() == 1);
  CHECK(std::isfinite(sample.log_probability.item<float>()));
}

TEST_CASE("The gradient of temperature * log probability - value matches finite differences") {
  at::Tensor raw = uniform({6, 4}, 1, -2, 2).to(at::kDouble);
  raw[0][2] = 3.5;  // above the bound of the log standard deviation
  raw[1][3] = -21.; // below
  const at::Tensor noise = uniform({6, 2}, 2, -2, 2).to(at::kDouble);
  const at::Tensor slope = uniform({6, 2}, 3).to(at::kDouble);
  constexpr double kTemperature = 0.3;
  constexpr double kShare = 1.0 / 6;
  const auto objective = [&](const at::Tensor& at_raw) {
    const auto sample = squashed_sample(at_raw, noise);
    return kTemperature * kShare * sample.log_probability.sum().item<double>()
           - (slope * sample.action).sum().item<double>(); // the value is linear in the action
  };
  const at::Tensor gradient = squashed_gradient(raw, noise, squashed_sample(raw, noise).action,
                                                slope, at::scalar_tensor(kTemperature), kShare);
  constexpr double kStep = 1e-6;
  for (std::int64_t row = 0; row < 6; ++row)
    for (std::int64_t k = 0; k < 4; ++k) {
      const auto moved = [&](double by) {
        at::Tensor changed = raw.clone();
        changed[row][k] += by;
        return objective(changed);
      };
      CHECK(gradient[row][k].item<double>()
            == doctest::Approx((moved(kStep) - moved(-kStep)) / (2 * kStep))
                   .epsilon(1e-5)
                   .scale(1e-3));
    }
}
