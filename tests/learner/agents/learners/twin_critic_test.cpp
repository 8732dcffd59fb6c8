#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/CPUGeneratorImpl.h>

#include "learner/agents/learners/twin_critic.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

struct Fixture {
  at::ScalarType type;
  ReplicaContext context{nullptr, 1};
  TwinCritic critic{4, 2, {8, 6}};
  at::Tensor state = uniform({5, 4}, 1).to(type);
  at::Tensor action = uniform({5, 2}, 2).to(type);
  at::Tensor target = uniform({5}, 3).to(type);
  at::Tensor weight = uniform({5}, 4, 0.2, 2).to(type);

  explicit Fixture(at::ScalarType of = at::kDouble) : type(of) {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(7);
    critic.build(context, at::TensorOptions(at::kDouble), generator, {.learning_rate = 1e-3});
    if (type != at::kDouble) { // the same parameters, rounded
      const at::Tensor parameters = critic.group().flat().to(type);
      critic.build(context, parameters, {.learning_rate = 1e-3});
    }
  }
};

bool is_near(const at::Tensor& single, const at::Tensor& exact) {
  return at::allclose(single.to(at::kDouble), exact, 1e-4, 1e-6);
}

} // namespace

TEST_CASE("The gradient of the twin critic's loss matches finite differences") {
  Fixture f;
  const auto loss = [&] {
    return f.critic.backward(f.state, f.action, f.target, f.weight, 0.5).item<double>();
  };
  loss();
  const at::Tensor gradient = f.critic.group().gradient().clone();
  at::Tensor& flat = f.critic.group().flat();
  constexpr double kStep = 1e-6;
  for (std::int64_t i = 0; i < flat.numel(); i += 3) {
    const double before = flat[i].item<double>();
    flat[i] = before + kStep;
    const double above = loss();
    flat[i] = before - kStep;
    const double below = loss();
    flat[i] = before;
    CHECK(gradient[i].item<double>()
          == doctest::Approx((above - below) / (2 * kStep)).epsilon(1e-5).scale(1e-3));
  }
}

TEST_CASE("The action gradient of the mean value matches finite differences") {
  Fixture f;
  for (const bool smaller : {false, true}) {
    CAPTURE(smaller);
    const at::Tensor gradient = f.critic.value(f.state, f.action, smaller).action_gradient.clone();
    constexpr double kStep = 1e-6;
    for (std::int64_t row = 0; row < 5; ++row)
      for (std::int64_t k = 0; k < 2; ++k) {
        const auto moved = [&](double by) {
          at::Tensor action = f.action.clone();
          action[row][k] += by;
          return f.critic.value(f.state, action, smaller).mean.item<double>();
        };
        CHECK(gradient[row][k].item<double>()
              == doctest::Approx((moved(kStep) - moved(-kStep)) / (2 * kStep))
                     .epsilon(1e-5)
                     .scale(1e-3));
      }
  }
}

TEST_CASE("The target value is the smaller critic's value, and the errors are averaged over both "
          "critics") {
  Fixture f;
  f.critic.backward(f.state, f.action, f.target, f.weight, 1);
  const at::Tensor errors = f.critic.errors().clone();
  const at::Tensor target_value = f.critic.target_value(f.state, f.action);
  CHECK(target_value.mean().item<double>()
        == doctest::Approx( // targets equal the critics at first
            f.critic.value(f.state, f.action, true).mean.item<double>()));
  const at::Tensor first = f.critic.value(f.state, f.action, false).values.clone();
  CHECK(target_value.le(first).all().item<bool>());
  for (std::int64_t row = 0; row < 5; ++row) {
    at::Tensor only = at::zeros({5}, at::kDouble);
    only[row] = 5; // the loss, a mean over the rows, is the sum of both squared errors of this row
    const double squares = f.critic.backward(f.state, f.action, f.target, only, 1).item<double>();
    const double one = std::abs((first[row] - f.target[row]).item<double>());
    const double other = std::sqrt(std::max(0.0, squares - one * one));
    CHECK(errors[row].item<double>() == doctest::Approx((one + other) / 2).epsilon(1e-6));
  }
}

TEST_CASE("In float32 losses, errors and gradients are those of float64") {
  Fixture exact, single(at::kFloat);
  for (const bool weighted : {false, true}) {
    CAPTURE(weighted);
    const auto loss = [&](Fixture& f) {
      return f.critic.backward(f.state, f.action, f.target, weighted ? f.weight : at::Tensor(),
                               0.5);
    };
    CHECK(is_near(loss(single), loss(exact)));
    CHECK(is_near(single.critic.group().gradient(), exact.critic.group().gradient()));
    CHECK(single.critic.errors().defined() == weighted);
    if (weighted)
      CHECK(is_near(single.critic.errors(), exact.critic.errors()));
  }
  for (const bool smaller : {false, true}) {
    CAPTURE(smaller);
    const auto mine = single.critic.value(single.state, single.action, smaller);
    const auto value = exact.critic.value(exact.state, exact.action, smaller);
    CHECK(is_near(mine.mean, value.mean));
    CHECK(is_near(mine.action_gradient, value.action_gradient));
  }
}

TEST_CASE("A value that is not a number makes the mean of the smaller values so") {
  Fixture f(at::kFloat);
  f.critic.group().flat().narrow(0, 0, 1).fill_(std::nanf(""));
  CHECK(std::isnan(f.critic.value(f.state, f.action, true).mean.item<float>()));
}
