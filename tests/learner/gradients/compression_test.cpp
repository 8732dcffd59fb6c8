#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "tests/learner/gradients/wrapped_fixture.hpp"

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::Means;
using collectives::on_ranks;

WrappedOptimizerOptions compressed(CompressionKind kind, bool feedback = true,
                                   std::int64_t bytes = 2048) {
  WrappedOptimizerOptions options;
  options.bucket_bytes = bytes;
  options.compression.kind = kind;
  options.compression.error_feedback = feedback;
  options.compression.rank = 1;
  options.compression.min_elements = 16;
  options.compression.fraction = 0.05;
  return options;
}

constexpr CompressionKind kAll[] = {CompressionKind::fp16, CompressionKind::bf16,
                                    CompressionKind::power_sgd, CompressionKind::top_k};

/// Trains on a quadratic and returns the distance to its minimum. Per replica, its gradients differ
/// far more than in the mean, and in most elements by less than a compressed gradient resolves.
double distance_after(int steps, const WrappedOptimizerOptions& options, double rate) {
  const auto target = torch::sin(torch::arange(400, at::kDouble)).view({20, 20});
  auto scale = torch::ones({20, 20}, at::kDouble);
  scale[0].fill_(4);
  std::vector<double> result(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    auto weights = torch::zeros({20, 20}, at::kDouble).requires_grad_();
    WrappedOptimizer optimizer(sgd_of({weights}, rate, 0), &communicator, options);
    const double sign = communicator.rank() == 0 ? 1 : -1;
    auto apart = torch::zeros({20, 20}, at::kDouble); // never cancels within the part that is sent
    apart[3].fill_(5 * sign);
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      ((weights - target).pow(2) * scale / 2 + apart * weights).sum().backward();
      optimizer.step();
    }
    result[static_cast<std::size_t>(communicator.rank())] =
        (weights - target).abs().max().item<double>();
  });
  REQUIRE(errors == std::vector<std::string>(2));
  CHECK(result[0] == result[1]);
  return result[0];
}

} // namespace

TEST_CASE("Compressed gradients are equal on all replicas, and fp16 and bf16 stay near the "
          "uncompressed loss") {
  const auto expected = alone(60);
  const auto start = alone(0);
  for (const auto kind : kAll) {
    CAPTURE(static_cast<int>(kind));
    const auto found = together(3, 60, compressed(kind));
    CHECK(same(found[0], found[1]));
    CHECK(same(found[0], found[2]));
    auto network = make_network();
    const auto loss = [&](const Parameters& parameters) {
      const at::NoGradGuard guard;
      for (std::size_t i = 0; i < parameters.size(); ++i)
        network->parameters()[i].copy_(parameters[i]);
      const auto [x, y] = batch_of(0);
      return loss_of(network, x, y).item<double>();
    };
    if (kind == CompressionKind::fp16 || kind == CompressionKind::bf16)
      CHECK(loss(found[0]) == doctest::Approx(loss(expected)).epsilon(0.05));
    else if (kind == CompressionKind::power_sgd)
      CHECK(loss(found[0]) < 0.9 * loss(start));
  }
}

TEST_CASE(
    "With error feedback, top-k and PowerSGD converge, and top-k does not converge without it") {
  auto top_k = compressed(CompressionKind::top_k);
  top_k.compression.fraction = 0.05; // 20 elements: at first, the row that differs
  CHECK(distance_after(4000, top_k, 0.003) < 0.05);
  top_k.compression.error_feedback = false;
  CHECK(distance_after(4000, top_k, 0.003) > 0.5);
  auto power = compressed(CompressionKind::power_sgd);
  CHECK(distance_after(4000, power, 0.003) < 0.05);
}

TEST_CASE("fp16 loses tiny gradients without error feedback and keeps them with it") {
  for (const bool feedback : {true, false}) {
    auto weights = std::vector<at::Tensor>(2);
    auto options = compressed(CompressionKind::fp16, feedback);
    on_ranks(Means::threads, 2, [&](Communicator& communicator) {
      auto& mine = weights[static_cast<std::size_t>(communicator.rank())];
      mine = torch::zeros({4}, at::kDouble).requires_grad_();
      WrappedOptimizer optimizer(sgd_of({mine}, 1, 0), &communicator, options);
      for (int step = 0; step < 100; ++step) {
        optimizer.zero_grad();
        (mine.sum() * 1e-8).backward(); // below half of fp16's smallest number, 3e-8
        optimizer.step();
      }
    });
    const double moved = -weights[0][0].item<double>();
    CHECK(moved == doctest::Approx(feedback ? 1e-6 : 0).epsilon(0.1));
  }
}

TEST_CASE("Gradients that a compression represents exactly arrive exactly") {
  // Small integers in fp16 and bf16, a matrix of rank 1, and all elements are exact.
  auto options = compressed(CompressionKind::top_k);
  options.compression.fraction = 1;
  std::vector<WrappedOptimizerOptions> all{compressed(CompressionKind::fp16),
                                           compressed(CompressionKind::bf16), options,
                                           compressed(CompressionKind::power_sgd)};
  for (const auto operation : {GradientOperation::mean, GradientOperation::sum})
    for (auto& each : all) {
      each.operation = operation;
      CAPTURE(static_cast<int>(each.compression.kind));
      std::vector<at::Tensor> gradients(2);
      const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
        auto weights = torch::zeros({12, 10}, at::kFloat).requires_grad_();
        auto bias = torch::zeros({3}, at::kFloat).requires_grad_();
        WrappedOptimizer optimizer(sgd_of({weights, bias}, 1, 0), &communicator, each);
        const auto rows = torch::arange(12, at::kFloat).view({12, 1});
        const auto columns = torch::arange(10, at::kFloat).view({1, 10});
        (weights * rows * columns * (1 + 2 * communicator.rank())).sum().backward();
        (bias * 4).sum().backward();
        optimizer.step();
        const auto factor = operation == GradientOperation::mean ? 2 : 4;
        CHECK(torch::allclose(weights.grad(), rows * columns * factor, 1e-4, 1e-4));
        CHECK(torch::equal(bias.grad(), torch::full({3}, factor == 2 ? 4.0F : 8.0F)));
      });
      CHECK(errors == std::vector<std::string>(2));
    }
}

TEST_CASE("After a step without a gradient, PowerSGD sends the next gradients") {
  for (const bool feedback : {true, false}) {
    CAPTURE(feedback);
    const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
      auto weights = torch::zeros({12, 10}, at::kFloat).requires_grad_();
      WrappedOptimizer optimizer(sgd_of({weights}, 1, 0), &communicator,
                                 compressed(CompressionKind::power_sgd, feedback));
      const auto rows = torch::arange(12, at::kFloat).view({12, 1});
      const auto columns = torch::arange(10, at::kFloat).view({1, 10});
      for (const int factor : {0, 2}) {
        optimizer.zero_grad();
        (weights * rows * columns * factor).sum().backward(); // a matrix of rank 1
        optimizer.step();
        CHECK(torch::allclose(weights.grad(), rows * columns * factor, 1e-4, 1e-4));
      }
    });
    CHECK(errors == std::vector<std::string>(2));
  }
}

TEST_CASE("Residuals of the compression are saved per replica and used when a run resumes") {
  for (const auto kind : kAll) {
    CAPTURE(static_cast<int>(kind));
    const auto whole = together(2, 8, compressed(kind));
    std::vector<TensorMap> states(2);
    const auto half =
        together(2, 4, compressed(kind), [&](int rank, int step, WrappedOptimizer& optimizer) {
          if (step == 3)
            states[static_cast<std::size_t>(rank)] = optimizer.state();
        });
    const auto& residuals = states[0].at("residual.0");
    REQUIRE(residuals.size(0) == 2);
    CHECK_FALSE(residuals[0].equal(residuals[1]));
    CHECK(states[1].at("residual.0").equal(residuals));
    std::vector<Parameters> found(2);
    for (const std::int64_t bytes : {std::int64_t{2048}, std::int64_t{1} << 20}) {
      const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
        auto network = make_network();
        {
          const at::NoGradGuard guard;
          for (std::size_t i = 0; i < half[0].size(); ++i)
            network->parameters()[i].copy_(half[0][i]);
        }
        WrappedOptimizer optimizer(sgd_of(network->parameters()), &communicator,
                                   compressed(kind, true, bytes));
        optimizer.load(states[0]); // replica 0's file, on both
        CHECK(optimizer.steps() == 4);
        for (int step = 4; step < 8; ++step) {
          optimizer.zero_grad();
          const auto [x, y] = batch_of(step);
          const auto begin = communicator.rank() * kRows / 2;
          loss_of(network, x.narrow(0, begin, kRows / 2), y.narrow(0, begin, kRows / 2)).backward();
          optimizer.step();
        }
        found[static_cast<std::size_t>(communicator.rank())] = network->parameters();
      });
      REQUIRE(errors == std::vector<std::string>(2));
      CHECK(same(found[0], found[1]));
      if (kind != CompressionKind::top_k && kind != CompressionKind::power_sgd)
        CHECK(same(found[0], whole[0])); // the others select per bucket, or sum in its order
      else if (bytes == 2048)
        CHECK(distance(found[0], whole[0]) < 0.05);
    }
  }
}

TEST_CASE("With operation sum, the residuals of another number of replicas keep their sum") {
  auto options = compressed(CompressionKind::top_k);
  options.operation = GradientOperation::sum;
  TensorMap saved;
  together(2, 2, options, [&](int rank, int, WrappedOptimizer& optimizer) {
    auto state = optimizer.state();
    if (rank == 0)
      saved = std::move(state);
  });
  const auto lost = saved.at("residual.0").sum(0);
  REQUIRE(lost.abs().max().item<double>() > 0);
  const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
    auto network = make_network();
    WrappedOptimizer optimizer(sgd_of(network->parameters()), &communicator, options);
    optimizer.load(saved);
    CHECK(torch::allclose(optimizer.state().at("residual.0").sum(0), lost));
  });
  CHECK(errors == std::vector<std::string>(3));
}

} // namespace troupe::learner
