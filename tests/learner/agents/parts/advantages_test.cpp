#include "learner/agents/parts/advantages.hpp"

#include <algorithm>

#include "tests/doctest_torch.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

/// Nine sequences of twelve steps.
TensorMap twelve_steps() {
  replay::TransitionSpec spec = state_spec(2, 1);
  spec.sequence_steps = 12;
  return random_batch({spec}, 9, 4);
}

} // namespace

TEST_CASE("Generalized advantage estimates match their definition within each episode") {
  constexpr double kDiscount = 0.9;
  constexpr double kLambda = 0.8;
  const TensorMap batch = twelve_steps();
  const at::Tensor values = uniform({9, 13}, 8).to(at::kDouble);
  const Advantages made = generalized_advantages(batch, values, kDiscount, kLambda);
  const auto of = [&](const char* name, std::int64_t row, std::int64_t t) {
    return batch.at(name)[row][t].item<double>();
  };
  int steps = 0;
  for (std::int64_t row = 0; row < 9; ++row)
    for (std::int64_t t = 0; t < 12; ++t) {
      const double got = made.advantage[row][t].item<double>();
      if (of("first", row, t + 1) != 0) {
        CHECK(got == 0);
        continue;
      }
      ++steps;
      double sum = 0;
      double weight = 1;
      for (std::int64_t k = t; k < 12 && of("first", row, k + 1) == 0; ++k) {
        const double next = kDiscount * of("discount", row, k);
        sum += weight
               * (of("reward", row, k) + next * values[row][k + 1].item<double>()
                  - values[row][k].item<double>());
        weight *= next * kLambda;
      }
      CHECK(got == doctest::Approx(sum));
      CHECK(made.value[row][t].item<double>()
            == doctest::Approx(sum + values[row][t].item<double>()));
    }
  CHECK(counting_steps(batch).sum().item<double>() == steps);
  CHECK(steps > 60);
}

TEST_CASE("V-trace matches its definition and equals the return for equal policies") {
  constexpr double kDiscount = 0.9;
  const TensorMap batch = twelve_steps();
  const at::Tensor values = uniform({9, 13}, 8).to(at::kDouble);
  for (const bool equal : {false, true}) {
    CAPTURE(equal);
    const at::Tensor ratios =
        equal ? at::ones({9, 12}, at::kDouble) : uniform({9, 12}, 5, 0.2, 2).to(at::kDouble);
    const VTraceOptions options{.discount = kDiscount,
                                .reward_scale = equal ? 1 : 0.25,
                                .lambda = equal ? 1 : 0.9,
                                .most_weight = equal ? 1 : 1.2,
                                .most_trace = equal ? 1 : 0.8};
    const Advantages made = v_trace(batch, values, ratios, options);
    const auto of = [&](const char* name, std::int64_t row, std::int64_t t) {
      return batch.at(name)[row][t].item<double>();
    };
    const auto reward = [&](std::int64_t row, std::int64_t t) {
      return of("reward", row, t) * options.reward_scale;
    };
    for (std::int64_t row = 0; row < 9; ++row) {
      const auto v = [&](std::int64_t t) { return values[row][t].item<double>(); };
      const auto is_step = [&](std::int64_t t) { return t < 12 && of("first", row, t + 1) == 0; };
      const auto value = [&](std::int64_t t) { // forward in time from t
        double sum = v(t);
        double weight = 1;
        for (std::int64_t k = t; is_step(k); ++k) {
          const double ratio = ratios[row][k].item<double>();
          const double next = kDiscount * of("discount", row, k);
          sum += weight * std::min(options.most_weight, ratio)
                 * (reward(row, k) + next * v(k + 1) - v(k));
          weight *= next * options.lambda * std::min(options.most_trace, ratio);
        }
        return sum;
      };
      for (std::int64_t t = 0; t < 12; ++t) {
        if (!is_step(t)) {
          CHECK(made.advantage[row][t].item<double>() == 0);
          continue;
        }
        CHECK(made.value[row][t].item<double>() == doctest::Approx(value(t)));
        const double next = kDiscount * of("discount", row, t);
        CHECK(made.advantage[row][t].item<double>()
              == doctest::Approx(std::min(options.most_weight, ratios[row][t].item<double>())
                                 * (reward(row, t) + next * value(t + 1) - v(t))));
        if (!equal)
          continue;
        double sum = 0; // the rewards up to the end, then the value there
        double weight = 1;
        std::int64_t k = t;
        for (; is_step(k); ++k) {
          sum += weight * reward(row, k);
          weight *= kDiscount * of("discount", row, k);
        }
        CHECK(made.value[row][t].item<double>() == doctest::Approx(sum + weight * v(k)));
      }
    }
  }
}

TEST_CASE("Normalised advantages have mean 0 and deviation 1 over the steps that count") {
  const at::Tensor counts = at::tensor({1.0, 0.0, 1.0, 1.0});
  const at::Tensor got = normalised(at::tensor({2.0, 900.0, 4.0, 6.0}), counts);
  CHECK(got[0].item<double>() == doctest::Approx(-1.2247449));
  CHECK(got[2].item<double>() == doctest::Approx(0));
  CHECK(got[3].item<double>() == doctest::Approx(1.2247449));
}
