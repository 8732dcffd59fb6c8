// LibTorch's headers here use its LOG, which doctest_torch.hpp takes away: they come first.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include <latch>

#include "tests/collectives/ranks.hpp"

namespace troupe::collectives {
namespace {

constexpr int kRanks = 2;
constexpr int kBatch = 16; // of one rank
constexpr int kSteps = 4;

torch::nn::Sequential make_network() {
  torch::manual_seed(1);
  torch::nn::Sequential network(torch::nn::Linear(8, 64), torch::nn::Tanh(),
                                torch::nn::Linear(64, 64), torch::nn::Tanh(),
                                torch::nn::Linear(64, 2));
  network->to(at::kDouble);
  return network;
}

std::shared_ptr<c10d::Reducer> make_reducer(std::vector<at::Tensor> parameters,
                                            c10::intrusive_ptr<c10d::ProcessGroup> group) {
  constexpr std::int64_t kBucketBytes = 8192;
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(parameters, {kBucketBytes});
  std::reverse(buckets.begin(), buckets.end());
  return std::make_shared<c10d::Reducer>(
      parameters, buckets, std::move(group), std::vector<bool>(parameters.size(), false),
      kBucketBytes, false, true, std::unordered_map<std::size_t, std::string>{}, kBucketBytes,
      false, false, std::vector<std::int64_t>{});
}

at::Tensor loss_of(const at::Tensor& output, const at::Tensor& y) {
  return (output - y).pow(2).mean();
}

/// The largest difference between each rank's parameters after kSteps and one big batch's.
double train(Means means) {
  torch::manual_seed(2);
  std::vector<at::Tensor> x, y;
  for (int step = 0; step < kSteps; ++step) {
    x.push_back(torch::randn({kRanks * kBatch, 8}, at::kDouble));
    y.push_back(torch::randn({kRanks * kBatch, 2}, at::kDouble));
  }
  std::vector<torch::nn::Sequential> networks;
  for (int rank = 0; rank <= kRanks; ++rank)
    networks.push_back(make_network());
  const auto errors = on_ranks(means, kRanks, [&](Communicator& communicator) {
    at::set_num_threads(1);
    auto& network = networks[static_cast<std::size_t>(communicator.rank())];
    auto parameters = network->parameters();
    c10d::verify_params_across_processes(communicator.process_group(), parameters, std::nullopt);
    auto reducer = make_reducer(parameters, communicator.process_group());
    torch::optim::SGD optimizer(parameters, 0.1);
    for (std::size_t step = 0; step < kSteps; ++step) {
      reducer->prepare_for_forward();
      const auto begin = communicator.rank() * kBatch;
      auto output = network->forward(x[step].narrow(0, begin, kBatch));
      reducer->prepare_for_backward({output});
      for (auto& parameter : parameters)
        parameter.mutable_grad().reset();
      loss_of(output, y[step].narrow(0, begin, kBatch)).backward();
      optimizer.step();
    }
  });
  REQUIRE(errors == std::vector<std::string>(kRanks));
  auto& whole = networks.back();
  torch::optim::SGD optimizer(whole->parameters(), 0.1);
  for (std::size_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    loss_of(whole->forward(x[step]), y[step]).backward();
    optimizer.step();
  }
  double worst = 0;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    for (std::size_t i = 0; i < whole->parameters().size(); ++i)
      worst = std::max(
          worst,
          (networks[rank]->parameters()[i] - whole->parameters()[i]).abs().max().item<double>());
  return worst;
}

} // namespace

TEST_CASE("LibTorch's Reducer over ranks of threads equals one big batch") {
  CHECK(train(Means::threads) < 1e-12);
}

TEST_CASE("LibTorch's Reducer over shared memory equals one big batch") {
  CHECK(train(kGlooSkipped ? Means::shared_threads : Means::shared_memory) < 1e-12);
}

TEST_CASE("backward goes on to the first layer while another rank holds back the last one's") {
  for (const auto means : {Means::threads, Means::shared_threads}) {
    std::latch at_first_layer(1);
    const auto errors = on_ranks(means, kRanks, [&](Communicator& communicator) {
      auto network = make_network();
      auto parameters = network->parameters();
      auto reducer = make_reducer(parameters, communicator.process_group());
      reducer->prepare_for_forward();
      const auto x = torch::ones({kBatch, 8}, at::kDouble);
      auto output = network->forward(x);
      reducer->prepare_for_backward({output});
      if (communicator.rank() == 0)
        parameters.front().register_hook([&](const at::Tensor&) { at_first_layer.count_down(); });
      else
        output.register_hook([&](const at::Tensor&) { at_first_layer.wait(); });
      loss_of(output, torch::zeros_like(output)).backward();
    });
    CHECK(errors == std::vector<std::string>(kRanks));
  }
}

TEST_CASE("what LibTorch calls through the process group is checked as well") {
  const auto errors = on_ranks(Means::threads, 2, [](Communicator& communicator) {
    std::vector<at::Tensor> tensors{torch::ones({communicator.rank() + 1})};
    communicator.process_group()->allreduce(tensors)->wait();
  });
  for (const auto& error : errors)
    CHECK(has(error, "all_reduce #0: rank 0 sum float32 [1], rank 1 sum float32 [2]"));
}

TEST_CASE("LibTorch's Reducer over our checked Gloo equals one big batch"
          * doctest::skip(collectives::kGlooSkipped)) {
  CHECK(train(Means::gloo) < 1e-12);
}

} // namespace troupe::collectives
