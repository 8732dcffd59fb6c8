#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "collectives/timeline.hpp"
#include "tests/doctest_torch.hpp"

#include <set>

#include "tests/learner/gradients/wrapped_fixture.hpp"

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::Means;
using collectives::on_ranks;

constexpr std::int64_t kManyBuckets = 2048; // bytes; the network then has about a dozen

at::Tensor leaf(double value, std::int64_t count = 3) {
  return torch::full({count}, value, at::kDouble).requires_grad_();
}

WrappedOptimizerOptions options_of(int accumulate, bool overlap, std::int64_t bytes) {
  WrappedOptimizerOptions options;
  options.accumulate = accumulate;
  options.overlap = overlap;
  options.bucket_bytes = bytes;
  return options;
}

} // namespace

TEST_CASE(
    "1 to 4 replicas equal one on the whole batch, with and without overlap and micro-batches") {
  const auto expected = alone(8);
  for (const int replicas : {1, 2, 3, 4})
    for (const int accumulate : {1, 2})
      for (const bool overlap : {true, false})
        for (const std::int64_t bytes : {kManyBuckets, std::int64_t{1} << 20}) {
          CAPTURE(replicas);
          CAPTURE(accumulate);
          CAPTURE(overlap);
          const auto found = together(replicas, 8, options_of(accumulate, overlap, bytes));
          CHECK(distance(found[0], expected) < 1e-12);
          for (const auto& other : found)
            CHECK(same(other, found[0]));
        }
}

TEST_CASE("After the first step, all buckets but the last are sent during backward") {
  std::vector<std::int64_t> early(6);
  std::int64_t buckets = 0;
  together(2, 6, options_of(1, true, kManyBuckets),
           [&](int rank, int step, WrappedOptimizer& optimizer) {
             if (rank > 0)
               return;
             early[static_cast<std::size_t>(step)] = optimizer.buckets_sent_early();
             buckets = optimizer.buckets();
           });
  CHECK(buckets > 4);
  CHECK(early
        == std::vector<std::int64_t>{0, buckets - 1, buckets - 1, buckets - 1, buckets - 1,
                                     buckets - 1});
  together(2, 3, options_of(1, false, kManyBuckets), [&](int, int, WrappedOptimizer& optimizer) {
    CHECK(optimizer.buckets_sent_early() == 0);
  });
}

TEST_CASE("Gradients that arrive after their bucket was sent are not lost") {
  // The loss takes one backward pass in steps 0 and 1, two in steps 2 and 3, then three.
  const auto expected = alone(6);
  std::vector<Parameters> found(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    auto network = make_network();
    WrappedOptimizer optimizer(sgd_of(network->parameters()), &communicator,
                               options_of(1, true, kManyBuckets));
    for (int step = 0; step < 6; ++step) {
      optimizer.zero_grad();
      const auto [x, y] = batch_of(step);
      const int passes = step < 2 ? 1 : (step < 4 ? 2 : 3);
      for (int pass = 0; pass < passes; ++pass) {
        const auto rows = kRows / 2 / passes;
        const auto begin = communicator.rank() * kRows / 2 + pass * rows;
        (loss_of(network, x.narrow(0, begin, rows), y.narrow(0, begin, rows)) / passes).backward();
      }
      optimizer.step();
    }
    found[static_cast<std::size_t>(communicator.rank())] = network->parameters();
  });
  REQUIRE(errors == std::vector<std::string>(2));
  CHECK(distance(found[0], expected) < 1e-12);
  CHECK(same(found[0], found[1]));
}

TEST_CASE("Late gradients on only one replica reach the others") {
  std::vector<at::Tensor> weights(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    auto& mine = weights[static_cast<std::size_t>(communicator.rank())];
    mine = leaf(0);
    auto other = leaf(0);
    WrappedOptimizer optimizer(sgd_of({other, mine}, 1, 0), &communicator,
                               options_of(1, true, 1)); // one bucket each
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      (mine.sum() + other.sum()).backward();
      if (step == 2 && communicator.rank() == 1)
        (10 * mine.sum()).backward();
      optimizer.step();
    }
  });
  REQUIRE(errors == std::vector<std::string>(2));
  CHECK(weights[0][0].item<double>() == doctest::Approx(-3 - 5));
  CHECK(torch::equal(weights[0], weights[1]));
}

TEST_CASE("Parameters that only some replicas use in a step count as zero on the others and cause "
          "no hang") {
  std::vector<Parameters> found(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    auto& mine = found[static_cast<std::size_t>(communicator.rank())];
    for (int i = 0; i < 5; ++i)
      mine.push_back(leaf(0));
    WrappedOptimizer optimizer(sgd_of(mine, 1, 0), &communicator, options_of(1, true, 1));
    for (int step = 0; step < 8; ++step) {
      optimizer.zero_grad();
      auto loss = mine[4].sum();
      for (int i = 0; i < 4; ++i) // a different path for each rank and step
        if ((step + i + communicator.rank()) % 2 == 0 || (step > 4 && i == 2))
          loss = loss + mine[static_cast<std::size_t>(i)].sum();
      if (step != 6 || communicator.rank() == 0)
        loss.backward(); // in step 6, replica 1 has no gradient
      optimizer.step();
    }
  });
  REQUIRE(errors == std::vector<std::string>(2));
  CHECK(same(found[0], found[1]));
  CHECK(found[0][4][0].item<double>() == doctest::Approx(-7.5));
  CHECK(found[0][0][0].item<double>() == doctest::Approx(-4)); // one of two replicas, eight steps
}

TEST_CASE("zero_grad discards gradients computed for another optimizer's loss") {
  // As in a GAN, where the generator's loss passes through the discriminator.
  for (const bool first : {true, false}) {
    std::vector<Parameters> found(2);
    const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
      auto& mine = found[static_cast<std::size_t>(communicator.rank())];
      mine = {leaf(1), leaf(1), leaf(1), leaf(1)};
      WrappedOptimizer generator(sgd_of({mine[0], mine[1]}, 0.1, 0), &communicator,
                                 options_of(1, true, 1));
      WrappedOptimizer judge(sgd_of({mine[2], mine[3]}, 0.1, 0), &communicator,
                             options_of(1, true, 1));
      for (int step = 0; step < 5; ++step) {
        const double rank = communicator.rank();
        if (step > 1 || first) { // from the start, or only after overlap has been learnt
          generator.zero_grad();
          judge.zero_grad();
          ((mine[0] + mine[1]) * (mine[2] + mine[3]) * rank).sum().backward();
          generator.step();
        }
        judge.zero_grad();
        ((mine[2] + mine[3]) * (1 + rank)).sum().backward();
        judge.step();
      }
    });
    REQUIRE(errors == std::vector<std::string>(2));
    CHECK(same(found[0], found[1]));
    CHECK(found[0][2][0].item<double>() == doctest::Approx(1 - 5 * 0.1 * 1.5));
  }
}

TEST_CASE(
    "Operation sum adds over the replicas, and the gradient norm and its limit apply to the sum") {
  auto options = options_of(1, true, 1);
  options.operation = GradientOperation::sum;
  options.max_gradient_norm = 3;
  std::vector<at::Tensor> weights(2);
  std::vector<double> norms(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    weights[rank] = leaf(0, 4);
    WrappedOptimizer optimizer(sgd_of({weights[rank]}, 1, 0), &communicator, options);
    (weights[rank].sum() * (1 + 3 * communicator.rank())).backward(); // 1 and 4
    optimizer.step();
    norms[rank] = optimizer.gradient_norm();
  });
  REQUIRE(errors == std::vector<std::string>(2));
  CHECK(norms == std::vector<double>{10, 10});
  CHECK(weights[0][0].item<double>() == doctest::Approx(-1.5).epsilon(1e-5));
}

TEST_CASE("Adaptive sums count equal gradients once and add orthogonal ones, for any number of "
          "replicas") {
  const auto row = torch::randn({7}, at::kDouble);
  for (const int replicas : {1, 2, 3, 4, 5, 8}) {
    CAPTURE(replicas);
    const auto equal = row.unsqueeze(0).expand({replicas, 7});
    CHECK(torch::allclose(adaptive_sum(equal), row));
    const auto orthogonal = torch::eye(8, at::kDouble).narrow(0, 0, replicas);
    CHECK(torch::allclose(adaptive_sum(orthogonal), orthogonal.sum(0)));
    CHECK(torch::equal(adaptive_sum(torch::zeros({replicas, 3})), torch::zeros({3})));
  }
  const auto pair = torch::tensor({{1.0, 0.0}, {1.0, 1.0}}, at::kDouble);
  // ab = 1, aa = 1, bb = 2: a / 2 + 3 b / 4.
  CHECK(torch::allclose(adaptive_sum(pair), torch::tensor({1.25, 0.75}, at::kDouble)));
}

TEST_CASE("With operation adasum, replicas on the same batch equal one replica") {
  auto options = options_of(1, true, kManyBuckets);
  options.operation = GradientOperation::adasum;
  std::vector<Parameters> found(3);
  const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
    auto network = make_network();
    WrappedOptimizer optimizer(sgd_of(network->parameters()), &communicator, options);
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      const auto [x, y] = batch_of(step);
      loss_of(network, x, y).backward();
      optimizer.step();
    }
    found[static_cast<std::size_t>(communicator.rank())] = network->parameters();
  });
  REQUIRE(errors == std::vector<std::string>(3));
  CHECK(distance(found[0], alone(4)) < 1e-12);
  CHECK(same(found[0], found[2]));
}

TEST_CASE("A NaN on one replica is reported on all with the parameter and the replica") {
  for (const auto kind : {CompressionKind::none, CompressionKind::fp16, CompressionKind::top_k,
                          CompressionKind::power_sgd})
    for (const bool overlap : {true, false}) {
      auto options = options_of(1, overlap, 1);
      options.compression.kind = kind;
      std::vector<Parameters> found(3);
      const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
        auto& mine = found[static_cast<std::size_t>(communicator.rank())];
        mine = {leaf(1), leaf(1), leaf(1)};
        WrappedOptimizer optimizer(sgd_of(mine, 1, 0), &communicator, options);
        for (int step = 0; step < 4; ++step) {
          optimizer.zero_grad();
          const double bad = step == 3 && communicator.rank() == 2 ? NAN : 0;
          (mine[0].sum() * 0 + mine[1].sum() * bad + mine[2].sum() * 0).backward();
          optimizer.step();
        }
      });
      for (std::size_t rank = 0; rank < 3; ++rank) {
        CAPTURE(errors[rank]);
        CHECK(has(errors[rank], "parameter 1 of the optimizer, shape [3], is not finite on replica "
                                "2 of 3"));
        for (const auto& parameter : found[rank])
          CHECK(torch::equal(parameter.detach(), torch::ones({3}, at::kDouble)));
      }
    }
}

TEST_CASE("A replica that has joined contributes zeros until all have joined") {
  for (const bool over_all : {false, true})
    for (const int accumulate : {1, 2}) {
      std::vector<at::Tensor> weights(3), statistics(3);
      std::vector<int> last(3);
      auto options = options_of(accumulate, true, 1);
      options.join_mean_over_all = over_all;
      const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        weights[rank] = leaf(0);
        auto second = leaf(0);
        WrappedOptimizer optimizer(sgd_of({weights[rank], second}, 1, 0), &communicator, options);
        const int updates = rank == 1 ? 4 : static_cast<int>(rank) + 1; // 1, 4, 3
        for (int step = 0; step < updates * accumulate; ++step) {
          optimizer.zero_grad();
          ((weights[rank].sum() + second.sum()) * 6).backward();
          optimizer.step();
        }
        statistics[rank] = torch::full({2}, static_cast<double>(rank), at::kDouble);
        last[rank] = optimizer.join({statistics[rank]});
      });
      REQUIRE(errors == std::vector<std::string>(3));
      CHECK(last == std::vector<int>{1, 1, 1});
      for (std::size_t rank = 0; rank < 3; ++rank) {
        CHECK(weights[rank][0].item<double>()
              == doctest::Approx(over_all ? -(6 + 4 + 4 + 2) : -4 * 6));
        CHECK(torch::equal(statistics[rank], torch::ones({2}, at::kDouble)));
      }
    }
}

TEST_CASE("A replica that ends within its micro-batches contributes its partial gradient") {
  std::vector<at::Tensor> weights(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    auto& mine = weights[static_cast<std::size_t>(communicator.rank())];
    mine = leaf(0);
    WrappedOptimizer optimizer(sgd_of({mine}, 1, 0), &communicator, options_of(4, true, 1));
    for (int step = 0; step < (communicator.rank() == 0 ? 8 : 6); ++step) {
      optimizer.zero_grad();
      mine.sum().backward();
      optimizer.step();
    }
    optimizer.join();
  });
  REQUIRE(errors == std::vector<std::string>(2));
  CHECK(weights[0][0].item<double>() == doctest::Approx(-2));
  CHECK(torch::equal(weights[0], weights[1]));
}

TEST_CASE("Bucket sizes are tried in the first steps, and the fastest on rank 0 is kept") {
  auto options = options_of(1, true, 0);
  // With this clock, steps with 4 MB are the fastest on rank 0 and on no other rank.
  std::vector<std::int64_t> chosen(2);
  const auto expected = alone(30);
  std::vector<Parameters> found(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    auto network = make_network();
    double time = 0;
    WrappedOptimizer* wrapped = nullptr;
    auto mine = options;
    mine.clock = [&] {
      const bool fast = wrapped && wrapped->bucket_bytes() == (4 << 20);
      return time += fast == (communicator.rank() == 0) ? 1 : 2;
    };
    WrappedOptimizer optimizer(sgd_of(network->parameters()), &communicator, mine);
    wrapped = &optimizer;
    for (int step = 0; step < 30; ++step) {
      optimizer.zero_grad();
      const auto [x, y] = batch_of(step);
      const auto begin = communicator.rank() * kRows / 2;
      loss_of(network, x.narrow(0, begin, kRows / 2), y.narrow(0, begin, kRows / 2)).backward();
      optimizer.step();
    }
    const auto rank = static_cast<std::size_t>(communicator.rank());
    chosen[rank] = optimizer.bucket_bytes();
    found[rank] = network->parameters();
  });
  REQUIRE(errors == std::vector<std::string>(2));
  CHECK(chosen == std::vector<std::int64_t>{4 << 20, 4 << 20});
  CHECK(distance(found[0], expected) < 1e-12);
}

TEST_CASE("A timeline has the wait for each bucket, its reduction and the optimizer's update") {
  std::vector<std::set<std::string>> names(2);
  on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    collectives::Timeline timeline(communicator.rank());
    auto options = options_of(1, true, 1);
    options.timeline = &timeline;
    {
      auto first = leaf(0), second = leaf(0);
      WrappedOptimizer optimizer(sgd_of({first, second}), &communicator, options);
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        (first.sum() + second.sum()).backward();
        optimizer.step();
      }
    }
    for (const auto& event : timeline.events())
      names[static_cast<std::size_t>(communicator.rank())].insert(
          event.name + (event.index < 0 ? "" : " " + std::to_string(event.index)));
  });
  const std::set<std::string> expected{"bucket wait 0", "bucket wait 1", "reduce 0", "reduce 1",
                                       "optimizer"};
  CHECK(names[0] == expected);
  CHECK(names[1] == expected);
}

TEST_CASE("Schedules set the rate of each parameter group before the update, by update number") {
  auto first = leaf(0), second = leaf(0);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const auto& parameter : {first, second})
    groups.emplace_back(Parameters{parameter}, std::make_unique<torch::optim::SGDOptions>(1.0));
  WrappedOptimizerOptions options;
  options.schedules = {{.warmup_steps = 2}, // 0, 1/2, 1, 1
                       {.shape = ScheduleShape::steps, .milestones = {3}}};
  WrappedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(groups, torch::optim::SGDOptions(1.0)), nullptr, options);
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    (first.sum() + second.sum()).backward();
    optimizer.step();
  }
  CHECK(first[0].item<double>() == doctest::Approx(-2.5));
  CHECK(second[0].item<double>() == doctest::Approx(-3.1));
  CHECK(optimizer.steps() == 4);
}

TEST_CASE("Invalid options of the wrapped optimizer are refused by name") {
  const auto message = [](const WrappedOptimizerOptions& options) {
    return error_of<std::invalid_argument>(
        [&] { WrappedOptimizer(sgd_of({leaf(1)}), nullptr, options); });
  };
  CHECK(has(message({.accumulate = 0}), "accumulate 0"));
  CHECK(has(message({.operation = GradientOperation::adasum,
                     .compression = {.kind = CompressionKind::fp16}}),
            "adasum"));
  CHECK(has(message({.compression = {.kind = CompressionKind::top_k, .fraction = 0}}), "fraction"));
  CHECK(has(message({.schedules = {{}, {}}}), "2 for 1 parameter groups"));
  CHECK(has(message({.schedules = {{.shape = ScheduleShape::cosine}}}), "total_steps"));
}

} // namespace troupe::learner
