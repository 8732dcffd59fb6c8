#include <torch/types.h>

#include "tests/doctest_torch.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include "collectives/mesh/fingerprint.hpp"
#include "learner/replicas/input.hpp"
#include "learner/replicas/replica_context.hpp"
#include "tests/collectives/ranks.hpp"

namespace troupe::learner {
namespace {

using collectives::all_empty;
using collectives::Communicator;
using collectives::Means;
using collectives::on_ranks;

constexpr int kReplicas = 3;
using Tensors = std::vector<at::Tensor>;
/// The result of a collective on replica `rank`, computed from all replicas' inputs.
using Reference = std::function<at::Tensor(const Tensors& inputs, int rank)>;
using Call = std::function<at::Tensor(ReplicaContext& context, const at::Tensor& input)>;

at::Tensor random(std::uint64_t seed, at::IntArrayRef shape) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return torch::randn(shape, generator, at::kDouble);
}

/// Checks that value and gradient of `call` on every replica equal those of `reference` in one
/// graph. The loss is the sum over the replicas, each of which applies a different function to its
/// result.
void check_derivative(const Call& call, const Reference& reference, at::IntArrayRef shape) {
  Tensors inputs, mine(kReplicas);
  for (std::uint64_t i = 0; i < kReplicas; ++i)
    inputs.push_back(random(i, shape).requires_grad_());
  std::vector<at::Tensor> expected;
  at::Tensor loss = torch::zeros({}, at::kDouble);
  for (int i = 0; i < kReplicas; ++i) {
    expected.push_back(reference(inputs, i));
    loss = loss
           + (random(10 + static_cast<std::uint64_t>(i), expected.back().sizes())
              * expected.back().pow(2))
                 .sum();
  }
  loss.backward();
  Tensors values(kReplicas);
  const auto errors = on_ranks(Means::threads, kReplicas, [&](Communicator& communicator) {
    ReplicaContext context(&communicator);
    const auto i = static_cast<std::size_t>(communicator.rank());
    mine[i] = inputs[i].detach().clone().requires_grad_();
    values[i] = call(context, mine[i]);
    (random(10 + i, values[i].sizes()) * values[i].pow(2)).sum().backward();
  });
  REQUIRE(errors == std::vector<std::string>(kReplicas));
  for (std::size_t i = 0; i < kReplicas; ++i) {
    CHECK(torch::allclose(values[i], expected[i]));
    const auto& gradient = inputs[i].grad();
    CHECK(torch::allclose(mine[i].grad(),
                          gradient.defined() ? gradient : torch::zeros_like(inputs[i])));
  }
}

at::Tensor stacked(const Tensors& inputs) {
  return torch::stack(inputs);
}

} // namespace

TEST_CASE("all_reduce and its gradient equal one graph over all replicas") {
  const auto check = [](ReduceOp op, const std::function<at::Tensor(const at::Tensor&)>& reduce) {
    CAPTURE(collectives::op_name(op));
    check_derivative([=](ReplicaContext& context,
                         const at::Tensor& input) { return context.all_reduce(input, op); },
                     [=](const Tensors& inputs, int) { return reduce(stacked(inputs)); }, {4, 2});
  };
  check(ReduceOp::sum, [](const at::Tensor& all) { return all.sum(0); });
  check(ReduceOp::mean, [](const at::Tensor& all) { return all.mean(0); });
  check(ReduceOp::min, [](const at::Tensor& all) { return all.amin(0); });
  check(ReduceOp::max, [](const at::Tensor& all) { return all.amax(0); });
  check(ReduceOp::first, [](const at::Tensor& all) { return all[0]; });
}

TEST_CASE("The other collectives and their gradients equal one graph over all replicas") {
  check_derivative([](ReplicaContext& context,
                      const at::Tensor& input) { return torch::cat(context.all_gather(input)); },
                   [](const Tensors& inputs, int) { return torch::cat(inputs); }, {2, 3});
  check_derivative(
      [](ReplicaContext& context, const at::Tensor& input) { return context.broadcast(input, 1); },
      [](const Tensors& inputs, int) { return inputs[1]; }, {5});
  for (const auto op : {ReduceOp::sum, ReduceOp::mean})
    check_derivative(
        [=](ReplicaContext& context, const at::Tensor& input) {
          return context.reduce_scatter(input, op);
        },
        [=](const Tensors& inputs, int rank) {
          const auto all = stacked(inputs);
          return (op == ReduceOp::sum ? all.sum(0) : all.mean(0)).narrow(0, 2 * rank, 2);
        },
        {2 * kReplicas, 3});
  check_derivative(
      [](ReplicaContext& context, const at::Tensor& input) {
        return torch::stack(context.all_to_all(input.unbind(0)));
      },
      [](const Tensors& inputs, int rank) {
        Tensors received;
        for (const auto& input : inputs)
          received.push_back(input[rank]);
        return torch::stack(received);
      },
      {kReplicas, 4});
}

TEST_CASE("Rows are gathered from replicas with different numbers of rows, with their gradients") {
  const auto cut = [](const at::Tensor& input, int rank) { return input.narrow(0, 0, 2 * rank); };
  check_derivative(
      [&](ReplicaContext& context, const at::Tensor& input) {
        return context.all_gather_rows(cut(input, context.replica_id())); // no rows of replica 0
      },
      [&](const Tensors& inputs, int) {
        Tensors parts;
        for (int i = 0; i < kReplicas; ++i)
          parts.push_back(cut(inputs[static_cast<std::size_t>(i)], i));
        return torch::cat(parts);
      },
      {2 * kReplicas, 2});
}

TEST_CASE("A nest is gathered, exchanged, broadcast and scattered with its structure") {
  const auto errors = on_ranks(Means::threads, 2, [](Communicator& communicator) {
    ReplicaContext context(&communicator);
    const int me = context.replica_id();
    const auto make = [](int value) {
      return Nest(Nest::Map{{"x", torch::full({2}, value, at::kFloat)},
                            {"list", Nest::List{torch::full({2, 2}, 10 * value, at::kLong),
                                                torch::full({4}, -value, at::kFloat)}}});
    };
    const auto equal = [](const Nest& a, const Nest& b) {
      const auto left = a.flatten(), right = b.flatten();
      bool same = a.describe() == b.describe();
      for (std::size_t i = 0; same && i < left.size(); ++i)
        same = torch::equal(left[i], right[i]);
      if (!same)
        throw std::runtime_error("nests differ");
    };
    const auto all = context.all_gather(make(me + 1));
    equal(all.at(0), make(1));
    equal(all.at(1), make(2));
    equal(context.broadcast(make(me + 1), 1), make(2));
    const auto received = context.all_to_all(std::vector<Nest>{make(10 * me), make(10 * me + 1)});
    equal(received.at(0), make(me));
    equal(received.at(1), make(10 + me));
    const auto mine = context.reduce_scatter(make(me + 1), ReduceOp::sum);
    equal(mine, Nest(Nest::Map{{"x", torch::full({1}, 3.0F)},
                               {"list", Nest::List{torch::full({1, 2}, 30, at::kLong),
                                                   torch::full({2}, -3.0F)}}}));
  });
  CHECK(errors == std::vector<std::string>(2));
}

TEST_CASE(
    "Nests of different structure are reported on every replica, even if their sizes are equal") {
  const auto errors = on_ranks(Means::threads, 2, [](Communicator& communicator) {
    ReplicaContext context(&communicator);
    context.all_reduce(TensorMap{{context.replica_id() == 0 ? "loss" : "lost", torch::ones({2})}});
  });
  for (const auto& error : errors) {
    CAPTURE(error);
    CHECK(has(error, "all_reduce of a nest"));
    CHECK(has(error, "another structure"));
  }
  CHECK(has(errors[0] + errors[1], "loss: float32 [2]"));
}

TEST_CASE("Items are mapped over the replicas, each on one of them, and returned in order") {
  std::vector<std::vector<int>> done(kReplicas);
  const auto errors = on_ranks(Means::threads, kReplicas, [&](Communicator& communicator) {
    ReplicaContext context(&communicator);
    std::vector<Nest> items;
    for (int i = 0; i < 7; ++i)
      items.emplace_back(torch::full({}, i));
    auto& mine = done[static_cast<std::size_t>(context.replica_id())];
    const auto square = [&](const Nest& item) {
      mine.push_back(item.tensor().item<int>());
      return Nest(item.tensor() * item.tensor());
    };
    const auto all = context.map_gather(items, square);
    for (int i = 0; i < 7; ++i)
      if (all.at(static_cast<std::size_t>(i)).tensor().item<int>() != i * i)
        throw std::runtime_error("item " + std::to_string(i) + " is wrong");
    if (context.map_reduce(items, square).tensor().item<int>() != 91
        || context.map_reduce(items, square, ReduceOp::max).tensor().item<int>() != 36)
      throw std::runtime_error("reduced wrongly");
  });
  CHECK(errors == std::vector<std::string>(kReplicas));
  for (const auto& mine : done)
    CHECK(mine.size() == 9); // three calls in three rounds each
}

TEST_CASE("A single replica has the same functions and gradients") {
  ReplicaContext context(nullptr);
  const auto x = random(1, {4, 2}).requires_grad_();
  (context.all_reduce(x).sum() + context.all_gather(x)[0].sum() + context.broadcast(x).sum()
   + context.reduce_scatter(x).sum() + context.all_gather_rows(x).sum())
      .backward();
  CHECK(torch::equal(x.grad(), torch::full({4, 2}, 5.0, at::kDouble)));
}

TEST_CASE("A collective without a gradient and a missing device are reported") {
  const auto errors = on_ranks(Means::threads, 2, [](Communicator& communicator) {
    ReplicaContext context(&communicator);
    const auto x = torch::ones({2}).requires_grad_();
    context.all_reduce(x, ReduceOp::product).sum().backward();
  });
  for (const auto& error : errors)
    CHECK(has(error, "all_reduce product has no derivative"));
  const ReplicaContext two(ReplicaAssignment{.devices = {at::kCPU, at::kMeta}});
  CHECK(two.logical_device(1) == at::Device(at::kMeta));
  CHECK_THROWS_WITH_AS(two.logical_device(2),
                       "logical_device 2: a replica has 2; give each more devices "
                       "(devices_per_replica)",
                       std::out_of_range);
}

} // namespace troupe::learner
