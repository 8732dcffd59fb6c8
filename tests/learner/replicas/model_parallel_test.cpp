#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/replicas/replicator.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kWidth = 8;
constexpr std::int64_t kRows = 16;

at::Tensor weight_of(std::uint64_t seed) {
  auto generator =
      at::make_generator<at::CPUGeneratorImpl>(seed); // replicas' threads share LibTorch's
  return torch::randn({kWidth, kWidth}, generator, at::kDouble) * 0.3;
}

// [pipeline]
/// Two layers, each on a logical device of its own: the fixed_rows go through in micro-batches, so
/// that the first device works on the next while the second works on this one.
class Pipeline {
public:
  Pipeline(ReplicaContext& context, int micro_batches)
      : first_device_(context.logical_device(0)),
        second_device_(context.logical_device(1)),
        micro_batches_(micro_batches),
        first_(weight_of(1).to(context.logical_device_for_variables(0)).requires_grad_()),
        second_(weight_of(2).to(context.logical_device_for_variables(1)).requires_grad_()),
        optimizer_(context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
            std::vector<at::Tensor>{first_, second_}, torch::optim::SGDOptions(0.1)))) {}

  TensorMap step(const TensorMap& batch) {
    optimizer_->zero_grad();
    at::Tensor loss;
    for (const auto& x : batch.at("x").chunk(micro_batches_)) {
      const auto hidden = x.to(first_device_).matmul(first_).tanh();
      const auto output = hidden.to(second_device_).matmul(second_);
      const auto part = output.pow(2).mean() / micro_batches_;
      loss = loss.defined() ? loss + part : part;
    }
    loss.backward();
    optimizer_->step();
    return {{"loss", loss.detach().cpu()}};
  }
  // [pipeline]
  const at::Tensor& second() const { return second_; }

private:
  at::Device first_device_, second_device_;
  int micro_batches_;
  at::Tensor first_, second_;
  std::unique_ptr<WrappedOptimizer> optimizer_;
};

// [split layer]
/// One layer whose columns lie on several logical devices: each computes its part of the outputs.
class SplitLayer {
public:
  explicit SplitLayer(ReplicaContext& context) : home_(context.device()) {
    const auto whole = weight_of(3);
    const int parts = context.num_logical_devices();
    for (int i = 0; i < parts; ++i) {
      devices_.push_back(context.logical_device(i));
      columns_.push_back(whole.chunk(parts, 1)[static_cast<std::size_t>(i)]
                             .clone()
                             .to(context.logical_device_for_variables(i))
                             .requires_grad_());
    }
    optimizer_ = context.wrap_optimizer(
        std::make_unique<torch::optim::SGD>(columns_, torch::optim::SGDOptions(0.1)));
  }
  TensorMap step(const TensorMap& batch) {
    optimizer_->zero_grad();
    std::vector<at::Tensor> outputs;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      outputs.push_back(batch.at("x").to(devices_[i]).matmul(columns_[i]).to(home_));
    const auto loss = (torch::cat(outputs, 1) - 1).pow(2).mean();
    loss.backward();
    optimizer_->step();
    return {{"loss", loss.detach().cpu()}};
  }
  // [split layer]
  at::Tensor whole() const { return torch::cat(columns_, 1).detach(); }

private:
  at::Device home_;
  std::vector<at::Device> devices_;
  std::vector<at::Tensor> columns_;
  std::unique_ptr<WrappedOptimizer> optimizer_;
};

Input fixed_rows(const InputContext& context) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(4);
  const auto all = torch::randn({kRows, kWidth}, generator, at::kDouble);
  const auto mine =
      part_of_batch({{"x", all}}, context.input_pipeline_id, context.num_input_pipelines);
  return [mine] { return mine; };
}

template <class Model, class Make>
std::shared_ptr<Model> trained(int replicas, int devices, const Make& make) {
  const std::vector<std::vector<at::Device>> all(
      static_cast<std::size_t>(replicas),
      std::vector<at::Device>(static_cast<std::size_t>(devices), at::kCPU));
  Replicator replicator(make_mirrored_strategy(replicas, {}, all));
  std::shared_ptr<Model> first;
  const auto models = replicator.build<Model>([&](ReplicaContext& context) {
    auto made = make(context);
    if (context.replica_id() == 0)
      first = made;
    return made;
  });
  const auto input = replicator.input(fixed_rows);
  for (int step = 0; step < 20; ++step)
    replicator.step(*input, [&](ReplicaContext& context, const TensorMap& batch) {
      return models.of(context).step(batch);
    });
  return first;
}

} // namespace

TEST_CASE(
    "A pipeline split over devices learns as a whole network, with micro-batches and replicas") {
  const auto make = [](int micro_batches) {
    return
        [=](ReplicaContext& context) { return std::make_shared<Pipeline>(context, micro_batches); };
  };
  const auto whole = trained<Pipeline>(1, 2, make(1))->second();
  CHECK(torch::allclose(trained<Pipeline>(1, 2, make(4))->second(), whole));
  CHECK(torch::allclose(trained<Pipeline>(2, 2, make(4))->second(), whole));
}

TEST_CASE("A layer split over logical devices learns as a whole layer, also on several replicas") {
  const auto make = [](ReplicaContext& context) { return std::make_shared<SplitLayer>(context); };
  const auto whole = trained<SplitLayer>(1, 1, make)->whole();
  CHECK(torch::allclose(trained<SplitLayer>(1, 4, make)->whole(), whole));
  CHECK(torch::allclose(trained<SplitLayer>(2, 2, make)->whole(), whole));
}

TEST_CASE("A replica with one device reports that it has no second") {
  CHECK_THROWS_WITH_AS(
      trained<Pipeline>(
          1, 1, [](ReplicaContext& context) { return std::make_shared<Pipeline>(context, 1); }),
      doctest::Contains("logical_device 1: a replica has 1"), ReplicaError);
}

} // namespace troupe::learner
