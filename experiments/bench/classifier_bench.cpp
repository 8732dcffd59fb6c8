// Training images per second of the classifier's ResNet-50, one replica, on batches that lie ready:
// uint8 pictures of 224x224, 8 in a batch, normalised in the step; label smoothing, backward, SGD
// with momentum and weight decay, metrics. And steps per second of optimizers over its parameters.

#include <ATen/ops/full_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "experiments/bench/bench.hpp"
#include "learner/nn/kernels/fused_sgd.hpp"
#include "learner/nn/kernels/fused_torch_adam.hpp"
#include "learner/nn/kernels/precision.hpp"
#include "learner/replicas/replica_threads.hpp"
#include "learner/workloads/classifier.hpp"
#include "learner/workloads/resnet.hpp"

namespace troupe::experiments {
namespace {

constexpr std::int64_t kBatchPictures = 8;
constexpr std::int64_t kPixels = 224;
constexpr std::int64_t kClasses = 1000;

void bench_training(const BenchOptions& options, const Report& report, const char* type) {
  learner::ClassifierConfig config;
  config.batch_size = kBatchPictures;
  config.precision = type;
  const auto classifier = learner::make_classifier(
      config,
      {.classes = kClasses, .height = kPixels, .width = kPixels, .steps_per_epoch = 100'000});
  learner::ReplicaContext context(nullptr, 1);
  classifier->build(context);
  const learner::TensorMap batch{
      {"picture", (at::rand({kBatchPictures, 3, kPixels, kPixels}) * 255).to(at::kByte)},
      {"label", at::randint(kClasses, {kBatchPictures}, at::kLong)}};
  classifier->step_fn(context, batch);
  auto figure = measure_rate(options, "classifier", "ResNet-50 training", "images/s", [&] {
    classifier->step_fn(context, batch);
    return static_cast<double>(kBatchPictures);
  });
  figure.config = {{"type", type},
                   {"batch", std::to_string(kBatchPictures)},
                   {"pixels", std::to_string(kPixels)},
                   {"threads", "1"}};
  report(figure);
}

template <class Optimizer, class Options>
void bench_optimizer(const BenchOptions& options, const Report& report, const char* name,
                     const Options& settings) {
  const learner::ResNet network;
  Optimizer optimizer(network->parameters(), settings);
  for (auto& parameter : network->parameters())
    parameter.mutable_grad() = at::full_like(parameter, 0.01);
  auto figure =
      measure_rate(options, "classifier", "optimizer, ResNet-50's parameters", "steps/s", [&] {
        optimizer.step();
        return 1.0;
      });
  figure.config = {{"optimizer", name}, {"threads", "1"}};
  report(figure);
}

} // namespace

void bench_classifier(const BenchOptions& options, const Report& report) {
  learner::prepare_compute_thread(1); // as a learner's does
  bench_training(options, report, "float32");
  if (learner::multiplies_bfloat16(at::kCPU))
    bench_training(options, report, "bfloat16");
  const auto sgd = torch::optim::SGDOptions(1e-3).momentum(0.9).weight_decay(1e-4);
  const auto adam = torch::optim::AdamOptions(1e-5);
  const auto adamw = torch::optim::AdamWOptions(1e-5);
  bench_optimizer<torch::optim::SGD>(options, report, "torch::optim::SGD", sgd);
  bench_optimizer<learner::FusedSgd>(options, report, "FusedSgd", sgd);
  bench_optimizer<torch::optim::Adam>(options, report, "torch::optim::Adam", adam);
  bench_optimizer<learner::FusedTorchAdam>(options, report, "FusedTorchAdam", adam);
  bench_optimizer<torch::optim::AdamW>(options, report, "torch::optim::AdamW", adamw);
  bench_optimizer<learner::FusedAdamW>(options, report, "FusedAdamW", adamw);
}

} // namespace troupe::experiments
