#include "learner/agents/parts/action_head.hpp"

#include <cmath>
#include <map>
#include <numbers>

#include "tests/doctest_torch.hpp"

using namespace troupe;
using namespace troupe::learner;

namespace {

/// A choice of two, two continuous numbers, a choice of three, and a continuous number.
replay::TransitionSpec mixed_actions() {
  return {.frame = {"state", env::ElementType::float32, {1}},
          .action_size = 5,
          .action_choices = {2, 0, 0, 3, 0}};
}

const std::vector<float> kHeadOutputs{0, std::log(3.0F), 0.5F, -2, 0, std::log(2.0F), 0, 0.25F};
const std::vector<float> kHeadDeviations{-1, 0, -2};

at::Tensor tensor(const std::vector<float>& values) {
  return at::tensor(values).to(at::kDouble);
}

/// Calculated by hand.
double log_density(const std::vector<float>& action) {
  const double first[] = {0.25, 0.75};
  const double second[] = {0.25, 0.5, 0.25};
  double sum =
      std::log(first[static_cast<int>(action[0])]) + std::log(second[static_cast<int>(action[3])]);
  const double mean[] = {0.5, -2, 0.25};
  const int number[] = {1, 2, 4};
  for (int i = 0; i < 3; ++i) {
    const double deviation = std::exp(kHeadDeviations[static_cast<std::size_t>(i)]);
    const double z = (action[static_cast<std::size_t>(number[i])] - mean[i]) / deviation;
    sum -= z * z / 2 + std::log(deviation) + std::log(2 * std::numbers::pi) / 2;
  }
  return sum;
}

} // namespace

TEST_CASE("The probability of a mixed action is the product of those of its components") {
  const ActionHead head(mixed_actions());
  CHECK(head.outputs() == 8);
  CHECK(head.continuous() == 3);
  for (const std::vector<float>& action :
       {std::vector<float>{1, 0.4F, -1.5F, 2, 0.2F}, std::vector<float>{0, 0.9F, -3, 1, 0.3F}}) {
    const double got = head.log_probability(tensor(kHeadOutputs).unsqueeze(0),
                                            tensor(kHeadDeviations), tensor(action).unsqueeze(0))
                           .item<double>();
    CHECK(got == doctest::Approx(log_density(action)));
  }
  const double choices = -(0.25 * std::log(0.25) + 0.75 * std::log(0.75))
                         - (0.5 * std::log(0.25) + 0.5 * std::log(0.5));
  const double normal = 3 * (0.5 + std::log(2 * std::numbers::pi) / 2) + -1 + 0 - 2;
  CHECK(head.entropy(tensor(kHeadOutputs).unsqueeze(0), tensor(kHeadDeviations)).item<double>()
        == doctest::Approx(choices + normal));
}

TEST_CASE("Drawn actions have the reported probability and the matching frequency") {
  const ActionHead head(mixed_actions());
  ActingRandom random{std::mt19937_64(5)};
  std::map<std::pair<int, int>, int> seen;
  double sum = 0, square = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> action(5);
    const double told =
        head.sample(kHeadOutputs.data(), kHeadDeviations.data(), random, action.data());
    REQUIRE(told == doctest::Approx(log_density(action)).epsilon(1e-4));
    ++seen[{static_cast<int>(action[0]), static_cast<int>(action[3])}];
    sum += action[1];
    square += (action[1] - 0.5) * (action[1] - 0.5);
  }
  CHECK(seen[{1, 1}] == doctest::Approx(0.375 * kDraws).epsilon(0.05));
  CHECK(seen[{0, 0}] == doctest::Approx(0.0625 * kDraws).epsilon(0.1));
  CHECK(sum / kDraws == doctest::Approx(0.5).epsilon(0.02));
  CHECK(std::sqrt(square / kDraws) == doctest::Approx(std::exp(-1)).epsilon(0.02));
}

TEST_CASE("The best action has the most probable choices and the means clipped to their range") {
  const ActionHead head(mixed_actions());
  std::vector<float> action(5);
  head.best(kHeadOutputs.data(), action.data());
  CHECK(action == std::vector<float>{1, 0.5F, -1, 1, 0.25F});
  const at::Tensor batch = at::tensor(std::vector<float>{1, 0, 0, 2.5F, 0}).unsqueeze(0);
  CHECK_THROWS_WITH_AS(head.check(batch, 9), doctest::Contains("update 9"), std::runtime_error);
}
