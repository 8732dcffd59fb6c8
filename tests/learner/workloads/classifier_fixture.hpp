#pragma once
// Small classifiers and their batches. Include tests/doctest_torch.hpp first.

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn.h>

#include "learner/workloads/classifier.hpp"

namespace troupe::learner {

inline constexpr std::int64_t kPixels = 8;
inline constexpr std::int64_t kBatch = 12;
inline constexpr std::int64_t kClasses = 3;

/// Pictures in which the brighter channel is the label. uint8 or float32.
inline TensorMap pictures(std::int64_t rows, std::uint64_t seed, at::ScalarType type = at::kByte,
                          std::int64_t pixels = kPixels) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  auto picture = torch::randint(0, 200, {rows, 3, pixels, pixels}, generator, at::kByte);
  const auto label = torch::randint(0, kClasses, {rows}, generator, at::kLong);
  for (std::int64_t row = 0; row < rows; ++row)
    picture[row][label[row].item<std::int64_t>()] += 50;
  picture = picture.contiguous(at::MemoryFormat::ChannelsLast);
  return {{"picture", type == at::kByte ? picture : picture.to(type) / 100 - 1}, {"label", label}};
}

inline TensorMap features(std::int64_t rows, std::uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto x = torch::randn({rows, 5}, generator);
  return {{"features", x}, {"label", x.narrow(1, 0, kClasses).argmax(1)}};
}

inline ClassifierConfig config_of(const std::string& model) {
  ClassifierConfig config;
  config.model = model;
  config.layers = {16, 8};
  config.batch_size = kBatch;
  config.linear_scaling = false;
  config.epochs = 10;
  config.warmup_epochs = 0.5;
  config.learning_rate = 0.05;
  config.precision = "float64";
  return config;
}

inline ClassifierSpec spec_of(bool of_pictures = true, std::int64_t pixels = kPixels) {
  ClassifierSpec spec{.classes = kClasses, .steps_per_epoch = 4};
  if (of_pictures)
    spec.height = spec.width = pixels;
  else
    spec.features = 5;
  return spec;
}

/// A classifier without other replicas.
struct Alone {
  Alone(const ClassifierConfig& config, const ClassifierSpec& spec, std::uint64_t seed = 1,
        UpdateCapture capture = UpdateCapture::where_it_pays, at::Device device = at::kCPU)
      : context(nullptr, seed, device), classifier(make_classifier(config, spec, capture)) {
    classifier->build(context);
  }
  Metrics step(const TensorMap& batch) { return classifier->step_fn(context, batch); }
  Metrics evaluate(const Dataset& dataset, std::int64_t batch) {
    return evaluate_classifier(context, *classifier, dataset, batch);
  }
  ReplicaContext context;
  std::unique_ptr<Classifier> classifier;
};

} // namespace troupe::learner
