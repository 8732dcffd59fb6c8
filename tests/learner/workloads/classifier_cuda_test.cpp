#include "tests/doctest_torch.hpp"

#include <cmath>

#include <ATen/Context.h>

#include "collectives/communicator.hpp"
#include "tests/learner/tensor_maps.hpp"
#include "tests/learner/workloads/classifier_fixture.hpp"
#include "tests/text.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kSide = 16; // pixels
const at::Device kGpu(at::kCUDA, 0);

bool no_gpu() {
  if (collectives::cuda_device_count() > 0)
    return false;
  MESSAGE("skipped: " << collectives::nccl_unavailable_reason());
  return true;
}

std::vector<ClassifierConfig> configs() {
  std::vector<ClassifierConfig> all;
  for (const auto* model : {"resnet20", "mlp"})
    for (const auto* optimizer : {"sgd", "adamw"}) {
      auto config = config_of(model);
      config.precision = "float32";
      config.optimizer = optimizer;
      config.learning_rate = optimizer == std::string("sgd") ? 0.02 : 0.002;
      config.nesterov = true;
      config.weight_decay = 0.01;
      config.gradient_norm = 1;
      config.average_decay = 0.9;
      all.push_back(config);
    }
  return all;
}

TensorMap batch_of(const ClassifierConfig& config, std::int64_t rows, std::uint64_t seed) {
  return config.model == "mlp" ? features(rows, seed) : pictures(rows, seed, at::kByte, kSide);
}

TensorMap pinned(const TensorMap& batch) {
  TensorMap result;
  for (const auto& [name, tensor] : batch)
    result[name] = tensor.pin_memory();
  return result;
}

void check_near(const TensorMap& on_gpu, const TensorMap& expected) {
  REQUIRE(on_gpu.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    CAPTURE(name);
    CHECK(at::allclose(on_gpu.at(name).cpu().to(at::kDouble), tensor.cpu().to(at::kDouble), 2e-3,
                       2e-4));
  }
}

} // namespace

TEST_CASE("Classifier updates on a GPU, eager and as a graph, give the results of the CPU") {
  if (no_gpu())
    return;
  at::globalContext().setAllowTF32CuDNN(false); // the CPU computes with 24 bits
  for (const auto& config : configs()) {
    CAPTURE(config.model);
    CAPTURE(config.optimizer);
    const auto spec = spec_of(config.model != "mlp", kSide);
    Alone cpu(config, spec, 1, UpdateCapture::never);
    Alone eager(config, spec, 1, UpdateCapture::never, kGpu);
    Alone captured(config, spec, 1, UpdateCapture::where_it_pays, kGpu);
    for (std::uint64_t step = 0; step < 12; ++step) {
      CAPTURE(step);
      const auto rows = batch_of(config, step == 6 ? kBatch - 3 : kBatch, step);
      if (step == 8) // after which a graph is captured again
        captured.classifier->load(copy_of(captured.classifier->parameters()),
                                  copy_of(captured.classifier->optimizer_state()));
      const auto expected = cpu.step(rows);
      for (auto* one : {&eager, &captured}) {
        const auto metrics = one->step(step % 2 ? pinned(rows) : rows);
        for (const auto& [name, value] : expected)
          CHECK(metrics.at(name) == doctest::Approx(value).epsilon(1e-3));
      }
    }
    for (auto* one : {&eager, &captured}) {
      CHECK(one->classifier->parameters().at("fc.weight").is_cuda());
      check_near(one->classifier->parameters(), cpu.classifier->parameters());
      check_near(one->classifier->optimizer_state(), cpu.classifier->optimizer_state());
      check_near(one->classifier->measure(batch_of(config, 5, 99)),
                 cpu.classifier->measure(batch_of(config, 5, 99)));
    }
  }
}

TEST_CASE("NaN in a batch that is on the GPU already is refused before a weight changes") {
  if (no_gpu())
    return;
  auto config = config_of("mlp");
  config.precision = "float32";
  Alone alone(config, spec_of(false), 1, UpdateCapture::where_it_pays, kGpu);
  auto rows = features(kBatch, 1);
  rows.at("features")[2][1] = NAN;
  rows.at("features") = rows.at("features").to(kGpu);
  CHECK(has(error_of([&] { alone.step(rows); }), "NaN or infinity in batch tensor \"features\""));
}

TEST_CASE("A replayed update with a gradient that is not finite names it and changes no weight") {
  if (no_gpu())
    return;
  for (const auto& config : configs()) {
    CAPTURE(config.model);
    CAPTURE(config.optimizer);
    const auto spec = spec_of(config.model != "mlp", kSide);
    Alone eager(config, spec, 1, UpdateCapture::never, kGpu);
    Alone captured(config, spec, 1, UpdateCapture::where_it_pays, kGpu);
    for (std::uint64_t step = 0; step < 5; ++step)
      for (auto* one : {&eager, &captured})
        one->step(batch_of(config, kBatch, step));
    for (auto* one : {&eager, &captured}) { // in place, to keep the graph
      const at::NoGradGuard no_gradient;
      one->classifier->parameters().at("fc.weight")[0][0] = NAN;
    }
    const auto before = copy_of(captured.classifier->parameters());
    const auto state = copy_of(captured.classifier->optimizer_state());
    const auto rows = batch_of(config, kBatch, 7);
    const auto error = error_of([&] { captured.step(rows); });
    CHECK(error == error_of([&] { eager.step(rows); }));
    CHECK(has(error, "update 6: the gradient of parameter \""));
    for (const auto& [name, tensor] : captured.classifier->parameters())
      if (!has(name, "running_") && !has(name, "num_batches")) {
        CAPTURE(name);
        CHECK(at::equal(at::nan_to_num(tensor), at::nan_to_num(before.at(name))));
      }
    CHECK(same(captured.classifier->optimizer_state(), state, 0));
  }
}

} // namespace troupe::learner
