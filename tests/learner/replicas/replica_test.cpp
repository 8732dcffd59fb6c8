#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "tests/collectives/ranks.hpp"
#include "tests/learner/mlp_replica.hpp"
#include "tests/text.hpp"

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::Means;
using collectives::on_ranks;

at::Tensor leaf(double value, std::int64_t count = 3) {
  return torch::full({count}, value, at::kDouble).requires_grad_();
}

std::unique_ptr<torch::optim::Optimizer> sgd(std::vector<at::Tensor> parameters,
                                             double weight_decay = 0) {
  return std::make_unique<torch::optim::SGD>(
      std::move(parameters), torch::optim::SGDOptions(1).weight_decay(weight_decay));
}

} // namespace

TEST_CASE("A global batch that the replicas do not divide is refused with both numbers") {
  const InputContext context{.num_replicas_in_sync = 3};
  CHECK(context.per_replica_batch_size(12) == 4);
  const auto message = error_of([&] { context.per_replica_batch_size(256); });
  CAPTURE(message);
  CHECK(message.find("256") != std::string::npos);
  CHECK(message.find("3 replicas") != std::string::npos);
}

TEST_CASE("A map of tensors of several types is reduced") {
  std::vector<Nest> maps(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    ReplicaContext context(&communicator);
    const double value = communicator.rank();
    const TensorMap mine{{"a", torch::full({2, 3}, value, at::kFloat)},
                         {"b", torch::full({}, 10 * value, at::kDouble)},
                         {"c", torch::full({4}, 2 * value, at::kFloat)}};
    maps[static_cast<std::size_t>(communicator.rank())] = context.all_reduce(mine);
  });
  REQUIRE(errors == std::vector<std::string>(2));
  for (const auto& map : maps) {
    CHECK(torch::equal(map.at("a").tensor(), torch::full({2, 3}, 0.5, at::kFloat)));
    CHECK(map.at("b").tensor().item<double>() == 5);
    CHECK(torch::equal(map.at("c").tensor(), torch::full({4}, 1.0, at::kFloat)));
  }
}

TEST_CASE("A context without a communicator is the only replica") {
  ReplicaContext context(nullptr);
  auto tensor = torch::full({2}, 3.0);
  context.all_reduce_(tensor);
  context.broadcast_(tensor);
  context.barrier();
  CHECK(torch::equal(context.all_reduce(tensor), tensor));
  CHECK(context.replica_id() == 0);
  CHECK(context.num_replicas_in_sync() == 1);
  CHECK(torch::equal(tensor, torch::full({2}, 3.0)));
  CHECK(context.all_gather(tensor).size() == 1);
  CHECK(context.all_to_all(std::vector<at::Tensor>{tensor}).size() == 1);
}

TEST_CASE("Wrapping gives every replica the parameters of replica 0, whatever their layout") {
  std::vector<at::Tensor> weights(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    ReplicaContext context(&communicator);
    auto& mine = weights[static_cast<std::size_t>(communicator.rank())];
    mine = (torch::arange(2 * 3 * 4 * 5, at::kDouble).view({2, 3, 4, 5}) + communicator.rank())
               .contiguous(at::MemoryFormat::ChannelsLast)
               .requires_grad_();
    auto optimizer = context.wrap_optimizer(sgd({mine}));
    (mine * mine.detach()).sum().backward();
    optimizer->step();
  });
  REQUIRE(errors == std::vector<std::string>(2));
  for (const auto& weight : weights)
    CHECK(torch::equal(weight, torch::zeros({2, 3, 4, 5}, at::kDouble))); // w - 1 * w
}

TEST_CASE("Gradients are averaged over one bucket and over many") {
  for (const std::int64_t bucket_bytes : {1, 40, 1 << 20}) {
    std::vector<std::vector<at::Tensor>> weights(2);
    const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
      auto& mine = weights[static_cast<std::size_t>(communicator.rank())];
      mine = {leaf(1), leaf(2), leaf(3, 1)};
      WrappedOptimizer optimizer(sgd(mine), &communicator, {.bucket_bytes = bucket_bytes});
      for (int step = 0; step < 2; ++step) {
        optimizer.zero_grad();
        ((mine[0].sum() + 2 * mine[1].sum() + 3 * mine[2].sum()) * (communicator.rank() + 1))
            .backward();
        optimizer.step();
      }
    });
    REQUIRE(errors == std::vector<std::string>(2));
    for (const auto& mine : weights) {
      CHECK(mine[0][0].item<double>() == doctest::Approx(1 - 2 * 1.5));
      CHECK(mine[1][2].item<double>() == doctest::Approx(2 - 2 * 3.0));
      CHECK(mine[2][0].item<double>() == doctest::Approx(3 - 2 * 4.5));
    }
  }
}

TEST_CASE("Gradients accumulate over several backward passes before one step") {
  std::vector<at::Tensor> weights(2);
  on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    auto& mine = weights[static_cast<std::size_t>(communicator.rank())];
    mine = leaf(0);
    WrappedOptimizer optimizer(sgd({mine}), &communicator);
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      mine.sum().backward();
      (mine.sum() * (2 * communicator.rank())).backward();
      optimizer.step();
    }
  });
  CHECK(weights[0][0].item<double>() == doctest::Approx(-4)); // 2 * mean(1, 3)
  CHECK(torch::equal(weights[0], weights[1]));
}

TEST_CASE("A parameter with a gradient on only one replica counts as zero on the other") {
  std::vector<std::vector<at::Tensor>> weights(2);
  on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    auto& mine = weights[static_cast<std::size_t>(communicator.rank())];
    mine = {leaf(1), leaf(1), leaf(1)};
    WrappedOptimizer optimizer(sgd(mine, 0.5), &communicator); // decays parameters with a gradient
    (communicator.rank() == 0 ? mine[0].sum() : mine[0].sum() + mine[1].sum()).backward();
    optimizer.step();
  });
  for (const auto& mine : weights) {
    CHECK(mine[0][0].item<double>() == doctest::Approx(1 - 1.5));
    CHECK(mine[1][0].item<double>() == doctest::Approx(1 - 1.0));
    CHECK(mine[2][0].item<double>() == 1);
    CHECK_FALSE(mine[2].grad().defined());
  }
}

TEST_CASE("Micro-batches without any gradient leave the parameters unchanged") {
  for (const int replicas : {1, 2}) {
    const auto errors = on_ranks(Means::threads, replicas, [&](Communicator& communicator) {
      auto weights = leaf(1);
      WrappedOptimizerOptions options;
      options.accumulate = 2;
      WrappedOptimizer optimizer(sgd({weights}, 0.5), &communicator, options);
      CHECK_FALSE(optimizer.step());
      CHECK(optimizer.step());
      CHECK(weights.eq(1).all().item<bool>());
    });
    CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(replicas)));
  }
}

TEST_CASE("Clipping limits the norm of the averaged gradient") {
  for (const int replicas : {1, 2}) {
    std::vector<at::Tensor> weights(2);
    std::vector<double> norms(2);
    const auto errors = on_ranks(Means::threads, replicas, [&](Communicator& communicator) {
      const auto i = static_cast<std::size_t>(communicator.rank());
      weights[i] = leaf(0, 4);
      WrappedOptimizer optimizer(sgd({weights[i]}), &communicator, {.max_gradient_norm = 1});
      (weights[i].sum() * 3).backward();
      optimizer.step();
      norms[i] = optimizer.gradient_norm();
    });
    REQUIRE(errors == std::vector<std::string>(static_cast<std::size_t>(replicas)));
    CHECK(norms[0] == doctest::Approx(6));
    CHECK(weights[0][0].item<double>() == doctest::Approx(-0.5).epsilon(1e-5));
  }
}

TEST_CASE("A gradient that is not finite stops every replica before the parameters change") {
  std::vector<at::Tensor> weights(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    auto& mine = weights[static_cast<std::size_t>(communicator.rank())];
    mine = leaf(1);
    auto fine = leaf(1);
    WrappedOptimizer optimizer(sgd({fine, mine}), &communicator);
    (fine.sum() + mine.sum() * (communicator.rank() == 1 ? NAN : 1.0)).backward();
    optimizer.step();
  });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CAPTURE(errors[rank]);
    CHECK(errors[rank].find(
              "parameter 1 of the optimizer, shape [3], is not finite on replica 1 of 2")
          != std::string::npos);
    CHECK(torch::equal(weights[rank].detach(), torch::ones({3}, at::kDouble)));
  }
}

TEST_CASE("Negative options of the optimizer are refused") {
  CHECK_THROWS_AS(WrappedOptimizer(sgd({leaf(1)}), nullptr, {.bucket_bytes = -1}),
                  std::invalid_argument);
  CHECK_THROWS_AS(WrappedOptimizer(sgd({leaf(1)}), nullptr, {.max_gradient_norm = -1}),
                  std::invalid_argument);
}

} // namespace troupe::learner
