#include "tests/doctest_torch.hpp"

#include <cmath>

#include "tests/learner/tensor_maps.hpp"
#include "tests/learner/workloads/classifier_fixture.hpp"
#include "tests/text.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kSide = 16; // pixels

struct Variant {
  std::string name;
  ClassifierConfig config;
  at::ScalarType type = at::kByte; // of the pictures

  bool of_pictures() const { return config.model != "mlp"; }
  ClassifierSpec spec() const { return spec_of(of_pictures(), kSide); }
  TensorMap batch(std::int64_t rows, std::uint64_t seed) const {
    return of_pictures() ? pictures(rows, seed, type, kSide) : features(rows, seed);
  }
};

/// A ResNet and an MLP with everything that an optimizer can do in a captured update.
std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const auto* model : {"resnet20", "mlp"}) {
    auto config = config_of(model);
    config.precision = "float32";
    config.weight_decay = 0.01;
    config.gradient_norm = 0.5;
    config.nesterov = true;
    all.push_back({std::string(model) + ", sgd with nesterov, clipped", config});
    config.nesterov = false;
    config.gradient_norm = 1e9; // never reached
    config.schedule = "steps";
    config.milestones = {1, 1.5};
    config.average_decay = 0.9;
    all.push_back({std::string(model) + ", sgd, averaged", config, at::kFloat});
    config.momentum = 0;
    config.gradient_norm = 0;
    all.push_back({std::string(model) + ", sgd without momentum", config});
    config.optimizer = "adamw";
    config.learning_rate = 0.01;
    config.gradient_norm = 0.5;
    all.push_back({std::string(model) + ", adamw, clipped", config});
    config.precision = "float64";
    all.push_back({std::string(model) + ", adamw in float64", config});
    config.precision = "bfloat16";
    all.push_back({std::string(model) + ", adamw in bfloat16", config});
  }
  return all;
}

/// Sets one weight of the classifier's last layer to NaN.
void poison(Classifier& classifier) {
  auto state = copy_of(classifier.parameters());
  state.at("fc.weight")[0][0] = NAN;
  classifier.load(state, copy_of(classifier.optimizer_state()));
}

bool equal_but_for_nan(const TensorMap& a, const TensorMap& b) {
  for (const auto& [name, tensor] : b)
    if (!at::equal(at::nan_to_num(a.at(name)), at::nan_to_num(tensor)))
      return false;
  return a.size() == b.size();
}

} // namespace

TEST_CASE("A captured update equals the eager update bit for bit") {
  for (const auto& v : variants()) {
    CAPTURE(v.name);
    Alone eager(v.config, v.spec(), 1, UpdateCapture::never);
    Alone captured(v.config, v.spec(), 1, UpdateCapture::always);
    for (std::uint64_t step = 0; step < 8; ++step) {
      CAPTURE(step);
      const auto rows = v.batch(step == 5 ? kBatch - 3 : kBatch, step); // one is smaller
      CHECK(captured.step(rows) == eager.step(rows));
      CHECK(same(captured.classifier->parameters(), eager.classifier->parameters(), 0));
    }
    auto expected = eager.classifier->optimizer_state();
    CHECK(same(captured.classifier->optimizer_state(), expected, 0));
    CHECK(same(captured.classifier->measure(v.batch(5, 9)),
               eager.classifier->measure(v.batch(5, 9)), 0));
  }
}

TEST_CASE("A run saved by one kind of update resumes with the other") {
  for (const auto& v : variants())
    for (const bool captured_first : {true, false}) {
      CAPTURE(v.name);
      const auto how = [](bool captured) {
        return captured ? UpdateCapture::always : UpdateCapture::never;
      };
      Alone first(v.config, v.spec(), 1, how(captured_first));
      Alone second(v.config, v.spec(), 9, how(!captured_first));
      second.step(v.batch(kBatch, 77)); // to be replaced by load()
      for (std::uint64_t step = 0; step < 4; ++step)
        first.step(v.batch(kBatch, step));
      second.classifier->load(copy_of(first.classifier->parameters()),
                              copy_of(first.classifier->optimizer_state()));
      for (std::uint64_t step = 4; step < 6; ++step)
        CHECK(second.step(v.batch(kBatch, step)) == first.step(v.batch(kBatch, step)));
      CHECK(same(second.classifier->parameters(), first.classifier->parameters(), 0));
      CHECK(same(second.classifier->optimizer_state(), first.classifier->optimizer_state(), 0));
    }
}

TEST_CASE("Values that are not finite are refused as by the eager update and change no weight") {
  for (const auto& v : variants()) {
    CAPTURE(v.name);
    Alone eager(v.config, v.spec(), 1, UpdateCapture::never);
    Alone captured(v.config, v.spec(), 1, UpdateCapture::always);
    for (auto* one : {&eager, &captured})
      one->step(v.batch(kBatch, 1));
    if (!v.of_pictures() || v.type != at::kByte) {
      auto rows = v.batch(kBatch, 2);
      rows.at(v.of_pictures() ? "picture" : "features")[0][0] = NAN;
      const auto before = copy_of(captured.classifier->parameters());
      CHECK(error_of([&] { captured.step(rows); }) == error_of([&] { eager.step(rows); }));
      CHECK(same(captured.classifier->parameters(), before, 0));
    }
    for (auto* one : {&eager, &captured})
      poison(*one->classifier);
    TensorMap before;
    for (const auto& parameter : captured.classifier->parameters())
      if (!has(parameter.first, "running_") && !has(parameter.first, "num_batches"))
        before.insert(parameter);
    before = copy_of(before);
    const auto state = copy_of(captured.classifier->optimizer_state());
    const auto rows = v.batch(kBatch, 3);
    const auto error = error_of([&] { captured.step(rows); });
    CHECK(error == error_of([&] { eager.step(rows); }));
    CHECK(has(error, "update 2: the gradient of parameter \""));
    auto after = captured.classifier->parameters();
    std::erase_if(after, [&](const auto& one) { return !before.contains(one.first); });
    CHECK(equal_but_for_nan(after, before));
    CHECK(same(captured.classifier->optimizer_state(), state, 0));
  }
}

TEST_CASE("A skipped first update leaves no trace in the momentum") {
  auto config = config_of("mlp");
  config.precision = "float32";
  Alone eager(config, spec_of(false), 1, UpdateCapture::never);
  Alone captured(config, spec_of(false), 1, UpdateCapture::always);
  const auto sound = copy_of(captured.classifier->parameters());
  for (auto* one : {&eager, &captured}) {
    auto state = copy_of(sound);
    state.at("fc.bias")[0] = NAN;
    one->classifier->load(state, {});
    CHECK_THROWS_AS(one->step(features(kBatch, 1)), std::runtime_error);
    one->classifier->load(sound, {});
  }
  for (std::uint64_t step = 0; step < 2; ++step)
    CHECK(captured.step(features(kBatch, step)) == eager.step(features(kBatch, step)));
  CHECK(same(captured.classifier->parameters(), eager.classifier->parameters(), 0));
}

TEST_CASE("An optimizer that cannot be captured is updated eagerly") {
  auto config = config_of("mlp");
  config.optimizer = "rmsprop";
  Alone eager(config, spec_of(false), 1, UpdateCapture::never);
  Alone asked(config, spec_of(false), 1, UpdateCapture::always);
  for (std::uint64_t step = 0; step < 5; ++step)
    CHECK(asked.step(features(kBatch, step)) == eager.step(features(kBatch, step)));
}

} // namespace troupe::learner
