// Training images per second of the classifier's ResNet-50 with one replica, on batches that are
// already on the device: uint8 images of 224x224, normalised in the step; label smoothing, backward
// pass, SGD with momentum and weight decay, metrics. On the CPU a batch has 8 images. If there is a
// GPU, the first one is measured with batches of 8, 64 and 256, both eager and captured as a CUDA
// graph. Also optimizer steps per second over the same parameters, on the CPU.

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

constexpr std::int64_t kCpuBatch = 8;
constexpr std::int64_t kGpuBatches[] = {8, 64, 256};
constexpr int kGpuWarmUp = 5; // updates on a GPU; the fourth one is captured
constexpr std::int64_t kPixels = 224;
constexpr std::int64_t kClasses = 1000;

struct ClassifierTraining {
  const char* type = "float32";
  std::int64_t batch = kCpuBatch;
  at::Device device = at::kCPU;
  bool captured = false;
};

void bench_training(const BenchOptions& options, const Report& report,
                    const ClassifierTraining& training) {
  learner::ClassifierConfig config;
  config.batch_size = training.batch;
  config.precision = training.type;
  const auto classifier = learner::make_classifier(
      config,
      {.classes = kClasses, .height = kPixels, .width = kPixels, .steps_per_epoch = 100'000},
      training.captured ? learner::UpdateCapture::always : learner::UpdateCapture::never);
  learner::ReplicaContext context(nullptr, 1, training.device);
  classifier->build(context);
  const learner::TensorMap batch{
      {"picture",
       at::randint(256, {training.batch, 3, kPixels, kPixels}, at::kByte).to(training.device)},
      {"label", at::randint(kClasses, {training.batch}, at::kLong).to(training.device)}};
  for (int i = 0; i < (training.device.is_cuda() ? kGpuWarmUp : 1); ++i)
    classifier->step_fn(context, batch);
  const auto rates = measure_rates(options, [&] {
    classifier->step_fn(context, batch);
    return static_cast<double>(training.batch); // reading the metrics ends the step
  });
  report_values(report, "classifier", "ResNet-50 training", "images/s", rates,
                {{"type", training.type},
                 {"batch", std::to_string(training.batch)},
                 {"pixels", std::to_string(kPixels)},
                 {"threads", "1"},
                 {"device", training.device.is_cuda() ? "cuda" : "cpu"},
                 {"captured", training.captured ? "yes" : "no"}});
}

void bench_gpu_training(const BenchOptions& options, const Report& report) {
  for (const auto batch : kGpuBatches)
    for (const auto* type : {"float32", "bfloat16"})
      for (const bool captured : {true, false})
        bench_training(options, report,
                       {.type = type,
                        .batch = batch,
                        .device = at::Device(at::kCUDA, 0),
                        .captured = captured});
}

template <class Optimizer, class Options>
void bench_optimizer(const BenchOptions& options, const Report& report, const char* name,
                     const Options& settings) {
  const learner::ResNet network;
  Optimizer optimizer(network->parameters(), settings);
  for (auto& parameter : network->parameters())
    parameter.mutable_grad() = at::full_like(parameter, 0.01);
  const auto rates = measure_rates(options, [&] {
    optimizer.step();
    return 1.0;
  });
  report_values(report, "classifier", "optimizer, ResNet-50's parameters", "steps/s", rates,
                {{"optimizer", name}, {"threads", "1"}});
}

} // namespace

void bench_classifier(const BenchOptions& options, const Report& report) {
  learner::prepare_compute_thread(1); // as the learner does
  if (wants_gpu(options))
    bench_gpu_training(options, report);
  if (options.device == "cuda")
    return;
  bench_training(options, report, {.type = "float32"});
  if (learner::has_bfloat16_instructions())
    bench_training(options, report, {.type = "bfloat16"});
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
