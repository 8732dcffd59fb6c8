#include <algorithm>
#include <random>

#include "tests/doctest_torch.hpp"

#include "learner/parameter_server/shard_plan.hpp"

namespace troupe::learner {

TEST_CASE("A plan covers every element once, and no shard has more than twice its share") {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<ParameterSize> sizes;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < 1 + random() % 40; ++i) {
      sizes.push_back({.elements = static_cast<std::int64_t>(1 + random() % 5000),
                       .group = static_cast<std::int64_t>(i % 3)});
      total += sizes.back().elements;
    }
    const int shards = static_cast<int>(1 + random() % 5);
    if (total < shards)
      continue;
    const auto plan = plan_shards(sizes, shards);
    REQUIRE(plan.size() == static_cast<std::size_t>(shards));
    std::vector<std::vector<bool>> seen;
    for (const auto& size : sizes)
      seen.emplace_back(static_cast<std::size_t>(size.elements));
    for (const auto& segments : plan) {
      // A piece is at most one share and goes to the lightest server, so a server gets at most two
      // shares.
      CHECK(elements_of(segments) <= 2 * ((total + shards - 1) / shards));
      for (const Segment& segment : segments) {
        auto& parameter = seen[static_cast<std::size_t>(segment.parameter)];
        CHECK(segment.group == sizes[static_cast<std::size_t>(segment.parameter)].group);
        for (std::int64_t i = segment.begin; i < segment.begin + segment.count; ++i) {
          CHECK_FALSE(parameter[static_cast<std::size_t>(i)]);
          parameter[static_cast<std::size_t>(i)] = true;
        }
      }
    }
    for (const auto& parameter : seen)
      CHECK(std::all_of(parameter.begin(), parameter.end(), [](bool one) { return one; }));
  }
}

TEST_CASE("A single parameter is divided equally among the shards") {
  const auto plan = plan_shards({{.elements = 10, .group = 0}}, 3);
  for (const auto& segments : plan) {
    REQUIRE(segments.size() == 1);
    CHECK(segments[0].count >= 3);
  }
  CHECK_THROWS_AS(plan_shards({{.elements = 2, .group = 0}}, 3), std::invalid_argument);
}

TEST_CASE("Every shard gets elements, also of parameters with few") {
  for (std::int64_t elements = 1; elements <= 12; ++elements)
    for (int shards = 1; shards <= elements; ++shards) {
      CAPTURE(elements);
      CAPTURE(shards);
      for (const auto& segments : plan_shards({{.elements = elements, .group = 0}}, shards))
        CHECK_FALSE(segments.empty());
    }
}

TEST_CASE("Parameters of any layout survive a round trip through a flat tensor") {
  const auto image = torch::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const std::vector<at::Tensor> parameters{image.clone(), torch::randn({7}),
                                           torch::randn({3, 2}).t()};
  std::vector<at::Tensor> expected;
  std::vector<ParameterSize> sizes;
  for (const auto& parameter : parameters) {
    expected.push_back(parameter.clone());
    sizes.push_back({.elements = parameter.numel(), .group = 0});
  }
  for (const int shards : {1, 2, 5}) {
    const FlatParameters flat_parameters(parameters, plan_shards(sizes, shards));
    auto flat = flat_parameters.make_flat();
    flat_parameters.read(flat);
    for (const auto& parameter : parameters)
      parameter.zero_();
    flat_parameters.write(flat);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      CHECK(parameters[i].equal(expected[i]));
    CHECK(parameters[0].is_contiguous(at::MemoryFormat::ChannelsLast));
  }
}

TEST_CASE("Missing gradients count as zeros and are reported") {
  auto with = torch::zeros({3}).requires_grad_();
  auto without = torch::zeros({2}).requires_grad_();
  with.mutable_grad() = torch::ones({3});
  const FlatParameters flat_parameters({with, without}, plan_shards({{3, 0}, {2, 0}}, 1));
  auto flat = flat_parameters.make_flat();
  CHECK(flat_parameters.read_gradients(flat) == std::vector<bool>{true, false});
  CHECK(flat.equal(torch::tensor({1.F, 1.F, 1.F, 0.F, 0.F})));
  CHECK_THROWS_WITH_AS(FlatParameters({with, torch::zeros({1}, at::kDouble)}, {}),
                       doctest::Contains("all float32, all float64"), std::invalid_argument);
}

} // namespace troupe::learner
