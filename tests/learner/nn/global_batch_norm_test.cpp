#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/nn/global_batch_norm.hpp"
#include "learner/replicas/replicator.hpp"
#include "tests/collectives/ranks.hpp"

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::Means;
using collectives::on_ranks;

constexpr std::int64_t kRows = 12;
constexpr std::int64_t kChannels = 3;

at::Tensor images(std::uint64_t seed, std::int64_t channels = kChannels) {
  torch::manual_seed(seed);
  return torch::randn({kRows, channels, 4, 4}, at::kDouble) * 3 + 5;
}

/// A network as a user writes it, without knowledge of replicas.
struct Network : torch::nn::Module {
  Network() {
    torch::manual_seed(1);
    convolution_ = register_module("convolution", torch::nn::Conv2d(kChannels, 6, 3));
    first_ = register_module("first", torch::nn::BatchNorm2d(6));
    tail_ = register_module(
        "tail", torch::nn::Sequential(torch::nn::Linear(24, 5), torch::nn::BatchNorm1d(5),
                                      torch::nn::Tanh(), torch::nn::Linear(5, 1)));
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) {
    return tail_->forward(torch::relu(first_->forward(convolution_->forward(x))).flatten(1));
  }

private:
  torch::nn::Conv2d convolution_{nullptr};
  torch::nn::BatchNorm2d first_{nullptr};
  torch::nn::Sequential tail_{nullptr};
};

struct Trained {
  std::shared_ptr<Network> network;
  std::unique_ptr<WrappedOptimizer> optimizer;
};

/// Parameters and buffers of every replica after 10 steps on the same global batches.
std::vector<TensorMap> after_training(int replicas, bool converted) {
  Replicator replicator(make_mirrored_strategy(replicas));
  std::vector<std::shared_ptr<Network>> networks;
  for (int i = 0; i < replicas; ++i) // one after the other, because they share LibTorch's generator
    networks.push_back(std::make_shared<Network>());
  const auto all = replicator.build<Trained>([&](ReplicaContext& context) {
    auto made = std::make_shared<Trained>();
    made->network = networks[static_cast<std::size_t>(context.local_id())];
    if (converted)
      CHECK(convert_batch_norm(*made->network, context) == 2);
    made->optimizer = context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
        made->network->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)));
    return made;
  });
  std::vector<at::Tensor> batches;
  for (std::uint64_t step = 0; step < 10; ++step)
    batches.push_back(images(step));
  const auto input = replicator.input(
      [&](const InputContext&) {
        return [&, step = std::size_t{0}]() mutable { return TensorMap{{"x", batches[step++]}}; };
      },
      {.pipelines = Pipelines::per_worker});
  for (std::size_t step = 0; step < batches.size(); ++step)
    replicator.step(*input, [&](ReplicaContext& context, const TensorMap& batch) {
      auto& mine = all.of(context);
      mine.optimizer->zero_grad();
      const auto& x = batch.at("x");
      const auto loss = (mine.network->forward(x) - x.mean({1, 2, 3}).unsqueeze(1)).pow(2).mean();
      loss.backward();
      mine.optimizer->step();
      return TensorMap{{"loss", loss.detach()}};
    });
  std::vector<TensorMap> states;
  for (int i = 0; i < replicas; ++i) {
    auto& state = states.emplace_back();
    for (const auto& item : all[i].network->named_parameters())
      state[item.key()] = item.value().detach().clone();
    for (const auto& item : all[i].network->named_buffers())
      state[item.key()] = item.value().clone();
  }
  return states;
}

bool close(const TensorMap& a, const TensorMap& b) {
  for (const auto& [name, tensor] : b)
    if (!torch::allclose(a.at(name), tensor, 1e-8, 1e-9))
      return false;
  return true;
}

} // namespace

TEST_CASE(
    "A converted network on 2 and 3 replicas learns as one on the whole batch, including buffers") {
  const auto whole = after_training(1, false)[0];
  for (const int replicas : {2, 3}) {
    for (const auto& mine : after_training(replicas, true))
      CHECK(close(mine, whole));
    CHECK_FALSE(close(after_training(replicas, false)[0], whole)); // not without conversion
  }
}

TEST_CASE(
    "Uneven shares of rows, also empty ones, are normalised as one batch, forward and backward") {
  const std::vector<std::int64_t> begins{0, 5, 5, kRows}; // replica 1 has no rows
  const auto x = images(7).requires_grad_();
  torch::nn::BatchNorm2d reference(torch::nn::BatchNormOptions(kChannels).momentum(0.3));
  reference->to(at::kDouble);
  {
    const at::NoGradGuard guard;
    reference->weight.copy_(torch::arange(1, 1 + kChannels));
    reference->bias.fill_(0.5);
  }
  torch::manual_seed(8);
  const auto weights = torch::randn(x.sizes(), at::kDouble);
  const auto expected = reference->forward(x);
  (expected.pow(2) * weights).sum().backward();
  std::vector<at::Tensor> sums(3), inputs(3), outputs(3);
  std::vector<TensorMap> buffers(3);
  const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
    ReplicaContext context(&communicator);
    const auto i = static_cast<std::size_t>(context.replica_id());
    GlobalBatchNorm norm(context, torch::nn::BatchNormOptions(kChannels).momentum(0.3));
    // Instead of to(at::kDouble), which would undo what the constructor did.
    {
      const at::NoGradGuard guard;
      norm->weight.copy_(torch::arange(1, 1 + kChannels));
      norm->bias.fill_(0.5);
    }
    const auto begin = begins[i], rows = begins[i + 1] - begin;
    inputs[i] = x.detach().narrow(0, begin, rows).to(at::kFloat).clone().requires_grad_();
    outputs[i] = norm->forward(inputs[i]);
    (outputs[i].pow(2) * weights.narrow(0, begin, rows)).sum().backward();
    sums[i] = torch::cat({norm->weight.grad(), norm->bias.grad()});
    buffers[i] = {{"mean", norm->running_mean}, {"variance", norm->running_var}};
  });
  REQUIRE(errors == std::vector<std::string>(3));
  const auto near = [](const at::Tensor& a, const at::Tensor& b) {
    return torch::allclose(a.to(at::kDouble), b, 1e-4, 1e-4);
  };
  CHECK(near(torch::cat(outputs), expected));
  CHECK(near(torch::cat({inputs[0].grad(), inputs[1].grad(), inputs[2].grad()}), x.grad()));
  CHECK(near(sums[0] + sums[1] + sums[2],
             torch::cat({reference->weight.grad(), reference->bias.grad()})));
  for (const auto& mine : buffers) {
    CHECK(near(mine.at("mean"), reference->running_mean));
    CHECK(near(mine.at("variance"), reference->running_var));
  }
}

TEST_CASE("Replicas with a single value per channel each are normalised as one batch") {
  const auto x = images(9).narrow(0, 0, 3).select(3, 0).select(2, 0).to(at::kFloat);
  for (const auto& momentum : {std::optional<double>(0.3), std::optional<double>()}) {
    const auto options = torch::nn::BatchNormOptions(kChannels).momentum(momentum);
    torch::nn::BatchNorm1d reference(options);
    const auto expected = reference->forward(x);
    std::vector<at::Tensor> outputs(3), means(3);
    const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
      ReplicaContext context(&communicator);
      GlobalBatchNorm norm(context, options);
      const auto i = static_cast<std::size_t>(context.replica_id());
      outputs[i] = norm->forward(x.narrow(0, context.replica_id(), 1));
      means[i] = norm->running_mean;
    });
    REQUIRE(errors == std::vector<std::string>(3));
    CHECK(torch::allclose(torch::cat(outputs), expected, 1e-4, 1e-4));
    for (const auto& mean : means)
      CHECK(torch::allclose(mean, reference->running_mean, 1e-4, 1e-4));
  }
}

TEST_CASE("Evaluation needs no other replica, and a single replica equals LibTorch's batch norm") {
  ReplicaContext alone(nullptr);
  GlobalBatchNorm norm(alone, torch::nn::BatchNormOptions(kChannels));
  torch::nn::BatchNorm2d reference(kChannels);
  const auto x = images(3).to(at::kFloat);
  CHECK(torch::equal(norm->forward(x), reference->forward(x)));
  std::vector<at::Tensor> outputs(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    ReplicaContext context(&communicator);
    Network network;
    convert_batch_norm(network, context);
    network.eval();
    if (context.replica_id() == 1) // a collective would wait for replica 0 in vain
      outputs[1] = network.forward(images(3));
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(outputs[1].defined());
}

TEST_CASE("Replicas whose parameters differ normalise without each other, and keep their buffers") {
  const auto errors = on_ranks(Means::threads, 2, [](Communicator& communicator) {
    ReplicaContext context(ReplicaAssignment{.replica_id = communicator.rank(),
                                             .num_replicas = 2,
                                             .communicator = &communicator,
                                             .own_parameters = true});
    torch::nn::BatchNorm2d norm(kChannels);
    convert_batch_norm(*norm, context);
    if (is_global_batch_norm(norm->weight))
      throw std::runtime_error("the norm waits for the other replica");
    norm->running_mean.fill_(context.replica_id());
    agree_on_buffers(*norm, context);
    if (norm->running_mean[0].item<int>() != context.replica_id())
      throw std::runtime_error("the buffers are those of the other replica");
  });
  CHECK(errors == std::vector<std::string>(2));
}

TEST_CASE("Moving a module undoes its conversion, and an unrecognisable batch norm is refused") {
  const auto errors = on_ranks(Means::threads, 2, [](Communicator& communicator) {
    ReplicaContext context(&communicator);
    torch::nn::BatchNorm2d norm(kChannels);
    if (convert_batch_norm(*norm, context) != 1 || !is_global_batch_norm(norm->weight))
      throw std::runtime_error("not converted");
    norm->to(at::kDouble);
    if (is_global_batch_norm(norm->weight))
      throw std::runtime_error("the documentation says that to() undoes it");
    torch::nn::Sequential bare(torch::nn::BatchNorm2d(
        torch::nn::BatchNormOptions(kChannels).affine(false).track_running_stats(false)));
    convert_batch_norm(*bare, context);
  });
  for (const auto& error : errors)
    CHECK(has(error, "convert_batch_norm: \"0\" has neither weights nor running"));
}

TEST_CASE(
    "An input with the wrong number of channels is refused, and so is a single value per channel "
    "over all replicas") {
  ReplicaContext alone(nullptr);
  GlobalBatchNorm norm(alone, torch::nn::BatchNormOptions(kChannels));
  CHECK_THROWS_WITH_AS(
      norm->forward(torch::zeros({4, 2})),
      "GlobalBatchNorm: the input is float32 [4, 2]; it must be [rows, 3 channels, …]",
      std::invalid_argument);
  const auto errors = on_ranks(Means::threads, 2, [](Communicator& communicator) {
    ReplicaContext context(&communicator);
    GlobalBatchNorm global(context, torch::nn::BatchNormOptions(kChannels));
    global->forward(torch::ones({1 - context.replica_id(), kChannels}));
  });
  for (const auto& error : errors)
    CHECK(has(error, "one row of one value per channel over all replicas has no variance"));
}

} // namespace troupe::learner
