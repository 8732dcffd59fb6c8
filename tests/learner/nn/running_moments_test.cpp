#include "tests/doctest_torch.hpp"

#include <array>

#include <ATen/CPUGeneratorImpl.h>

#include "learner/nn/running_moments.hpp"
#include "learner/replicas/replica_context.hpp"
#include "tests/collectives/ranks.hpp"

using namespace troupe;
using namespace troupe::learner;

namespace {

at::Tensor drawn_rows(std::int64_t count, std::uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn({count, 3}, generator) * at::tensor({1.0F, 0.01F, 100.0F})
         + at::tensor({1e4F, 0.0F, -7.0F});
}

double largest_of(const at::Tensor& x) {
  return x.abs().max().item<double>();
}

} // namespace

TEST_CASE("Running moments equal those of all rows at once") {
  ReplicaContext context(nullptr, 1);
  RunningMoments moments(3);
  moments.build(at::kFloat);
  std::vector<at::Tensor> all;
  for (std::uint64_t i = 0; i < 20; ++i) {
    all.push_back(drawn_rows(1 + static_cast<std::int64_t>(i), i));
    moments.observe(context, all.back());
  }
  const at::Tensor whole = at::cat(all).to(at::kDouble);
  const auto [variance, mean] = at::var_mean(whole, at::IntArrayRef{0}, false, false);
  TensorMap shown;
  moments.show("observation", shown);
  CHECK(largest_of(shown.at("observation.mean") / mean - 1) < 1e-9);
  CHECK(largest_of(shown.at("observation.variance") / variance - 1) < 1e-6);
  CHECK(shown.at("observation.count").item<double>() == 210);

  const at::Tensor normal = moments.normalised(whole);
  CHECK(largest_of(normal.mean(0)) < 1e-6);
  CHECK(largest_of(normal.square().mean(0) - 1) < 0.02); // a hundredth in the second column
  const at::Tensor published = moments.published();
  CHECK(largest_of((whole - published.narrow(0, 0, 3)) * published.narrow(0, 3, 3) - normal)
        < 0.01);
}

TEST_CASE("Before the first rows, rows are left unchanged, and a constant column gives 0") {
  ReplicaContext context(nullptr, 1);
  RunningMoments moments(3);
  moments.build(at::kFloat);
  const at::Tensor x = drawn_rows(4, 1);
  CHECK(largest_of(moments.normalised(x) - x) < 1e-2);
  moments.observe(context, at::full({5, 3}, 2.5));
  CHECK(largest_of(moments.normalised(at::full({2, 3}, 2.5))) == 0);
}

TEST_CASE("Replicas in sync have the moments of one that observes all of their rows") {
  constexpr int kReplicas = 2;
  std::array<TensorMap, kReplicas + 1> shown;
  const auto learn = [&](ReplicaContext& context, std::int64_t first, std::int64_t count, int to) {
    RunningMoments moments(3);
    moments.build(at::kFloat);
    for (std::uint64_t i = 0; i < 5; ++i)
      moments.observe(context, drawn_rows(8, i).narrow(0, first, count));
    moments.show("observation", shown[static_cast<std::size_t>(to)]);
  };
  const auto errors = collectives::on_ranks(
      collectives::Means::threads, kReplicas, [&](collectives::Communicator& communicator) {
        ReplicaContext context(&communicator);
        learn(context, 4 * communicator.rank(), 4, communicator.rank());
      });
  CHECK(errors == std::vector<std::string>(kReplicas));
  ReplicaContext alone(nullptr);
  learn(alone, 0, 8, kReplicas);
  for (const auto& [name, tensor] : shown[0]) {
    CAPTURE(name);
    CHECK(at::equal(tensor, shown[1].at(name)));
    CHECK(largest_of(tensor / shown[kReplicas].at(name) - 1) < 1e-9);
  }
}
