#include "learner/acting/return_points.hpp"

#include "tests/doctest_torch.hpp"

#include <cmath>
#include <cstring>

namespace troupe::learner {
namespace {

constexpr double kDiscount = 0.9;

std::vector<std::byte> bytes_of(const std::vector<float>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

/// Step i has observation i, action i and reward i + 1.
ReturnPoints points_of(int steps, std::size_t most, double last_discount) {
  ReturnPointRecorder recorder(most, kDiscount);
  for (int i = 0; i < steps; ++i) {
    const float number[] = {static_cast<float>(i)};
    recorder.add(bytes_of({number[0]}), number, i + 1, i + 1 == steps ? last_discount : 1);
  }
  return recorder.finish();
}

double return_from(int step, int steps) {
  double sum = 0;
  for (int i = steps; i-- > step;)
    sum = i + 1 + kDiscount * sum;
  return sum;
}

const replay::TransitionSpec kNumbers{.frame = {"state", env::ElementType::float32, {1}},
                                      .action_size = 1};

} // namespace

TEST_CASE(
    "Return points of a short episode that terminated are all of its steps with their returns") {
  const ReturnPoints points = points_of(5, 8, 0);
  REQUIRE(points.returns.size() == 5);
  for (int i = 0; i < 5; ++i) {
    CHECK(points.returns[static_cast<std::size_t>(i)] == doctest::Approx(return_from(i, 5)));
    CHECK(points.actions[static_cast<std::size_t>(i)] == static_cast<float>(i));
  }
  const TensorMap tensors = tensors_of(points, kNumbers);
  CHECK(at::equal(tensors.at("observation"), at::arange(5, at::kFloat).view({5, 1})));
  CHECK(at::equal(tensors.at("action"), at::arange(5, at::kFloat).view({5, 1})));
}

TEST_CASE("Return points of a long episode have the requested number and are spread evenly") {
  for (const int steps : {9, 16, 17, 33, 1000, 1023}) {
    CAPTURE(steps);
    const ReturnPoints points = points_of(steps, 8, 0);
    REQUIRE(points.returns.size() == 8);
    CHECK(points.observations.size() == 8 * sizeof(float));
    CHECK(points.actions.front() == 0);
    CHECK(points.actions.back() >= static_cast<float>(steps) * 0.7F);
    for (std::size_t i = 0; i < 8; ++i) {
      const int step = static_cast<int>(points.actions[i]);
      CHECK(points.returns[i] == doctest::Approx(return_from(step, steps)));
      if (i > 0)
        CHECK(points.actions[i] - points.actions[i - 1]
              <= std::ceil(static_cast<float>(steps) / 4));
    }
  }
}

TEST_CASE("Return points leave out the end of an episode that a time limit cut off") {
  // 0.9^29 = 0.047 is the first power below 1/20.
  const ReturnPoints points = points_of(40, 40, 1);
  REQUIRE(points.returns.size() == 12);
  CHECK(points.actions.back() == 11);
  CHECK(points_of(28, 40, 1).returns.empty());
  CHECK(points_of(29, 40, 1).returns.size() == 1);
}

TEST_CASE("A batch of return points has the same pictures and vectors as a batch from replay") {
  replay::TransitionSpec both{.frame = {"pixels", env::ElementType::uint8, {1, 1, 3}},
                              .vectors = {{"speed", env::ElementType::float32, {2}}},
                              .stack = 2,
                              .action_size = 1};
  const std::size_t whole = both.observation_bytes();
  ReturnPoints points{.actions = {0.5F, -0.5F}, .returns = {1, 2}};
  for (unsigned char i = 0; i < 2; ++i) {
    std::vector<std::byte> one(whole);
    for (unsigned char k = 0; k < 6; ++k)
      one[k] = std::byte(10 * i + k);
    const float speed[] = {static_cast<float>(i), static_cast<float>(i) + 0.25F};
    std::memcpy(one.data() + both.vector_offset(0), speed, sizeof speed);
    points.observations.insert(points.observations.end(), one.begin(), one.end());
  }
  const TensorMap tensors = tensors_of(points, both);
  const at::Tensor& pictures = tensors.at("observation");
  CHECK(pictures.sizes() == at::IntArrayRef({2, 2, 1, 3}));
  CHECK((pictures.scalar_type() == at::kByte));
  CHECK(pictures[1][1][0][2].item<int>() == 15);
  const at::Tensor& speed = tensors.at(replay::vector_name("observation", both.vectors[0]));
  CHECK(speed[1][1].item<float>() == 1.25F);

  points.actions.pop_back();
  CHECK_THROWS_WITH_AS(tensors_of(points, both), doctest::Contains("1 numbers of actions"),
                       std::invalid_argument);
}

TEST_CASE("The errors of values at return points are the differences from the returns") {
  const ReturnPoints points{.returns = {1, 2, 6}};
  const Metrics errors = value_errors(points, at::tensor({3.0, 4.0, 8.0}));
  CHECK(errors.at("q_bias") == doctest::Approx(2));
  CHECK(errors.at("q_bias_deviation") == doctest::Approx(0));
  CHECK(errors.at("q_return") == doctest::Approx(3));
  const Metrics spread = value_errors(points, at::tensor({0.0, 2.0, 7.0}));
  CHECK(spread.at("q_bias") == doctest::Approx(0));
  CHECK(spread.at("q_bias_deviation") == doctest::Approx(std::sqrt(2.0 / 3)));
  CHECK_THROWS_AS(value_errors(points, at::zeros({2})), std::runtime_error);
}

} // namespace troupe::learner
