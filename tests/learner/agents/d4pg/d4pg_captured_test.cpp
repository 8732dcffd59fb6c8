// The update without a read by the host, which a GPU makes as one graph, on the CPU.
#include "tests/doctest_torch.hpp"

#include <limits>

#include "learner/device/step_graph.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

std::vector<Variant> captured_variants() {
  D4pgConfig states = small_config();
  states.precision = "float64";
  D4pgConfig pixels = states;
  pixels.encoder_channels = 8;
  pixels.feature_size = 12;
  D4pgConfig clipped = states;
  clipped.gradient_norm = 1e-3;
  clipped.action_gradient_norm = 0.5;
  D4pgConfig copies = states;
  copies.target_period = 3;
  copies.target_update = 1;
  D4pgConfig narrow = small_config();
  return {{"states", states, state_spec(7, 2)},
          {"clipped", clipped, state_spec(7, 2)},
          {"hard copies", copies, state_spec(7, 2)},
          {"states in float32", narrow, state_spec(7, 2)},
          {"pixels", pixels, pixel_spec(40, 3, 2)}};
}

void check_alike(const TensorMap& one, const TensorMap& other, double tolerance) {
  REQUIRE(one.size() == other.size());
  for (const auto& [name, tensor] : one) {
    CAPTURE(name);
    CHECK(
        at::allclose(tensor.to(at::kDouble), other.at(name).to(at::kDouble), tolerance, tolerance));
  }
}

} // namespace

TEST_CASE("an update without a read in between is the update") {
  for (const Variant& v : captured_variants()) {
    CAPTURE(v.name);
    const double tolerance = v.config.precision == "float64" ? 1e-6 : 1e-3;
    ReplicaContext context(nullptr, 3);
    const auto usual = built(v.config, v.spec, context);
    const auto whole = built(v.config, v.spec, context, UpdateCapture::always);
    for (std::uint64_t i = 0; i < 7; ++i) {
      CAPTURE(i);
      const bool weighted = i > 3;
      TensorMap batch = random_batch(v.spec, i == 6 ? 9 : 6, 10 + i);
      if (weighted)
        batch["weight"] = uniform({batch.at("reward").size(0)}, 5, 0, 1);
      const Metrics expected = usual->step_fn(context, batch);
      const Metrics metrics = whole->step_fn(context, batch);
      REQUIRE(metrics.size() == expected.size());
      for (const auto& [name, value] : expected) {
        CAPTURE(name);
        CHECK(metrics.at(name) == doctest::Approx(value).epsilon(tolerance));
      }
      CHECK(whole->priorities().defined() == weighted);
      if (weighted)
        CHECK(at::allclose(whole->priorities(), usual->priorities(), tolerance, tolerance));
      check_alike(whole->parameters(), usual->parameters(), tolerance);
      check_alike(whole->optimizer_state(), usual->optimizer_state(), tolerance);
    }
  }
}

TEST_CASE("an update without a read in between follows the learning rates") {
  for (const Variant& v : captured_variants()) {
    CAPTURE(v.name);
    const double tolerance = v.config.precision == "float64" ? 1e-6 : 1e-3;
    ReplicaContext context(nullptr, 3);
    context.set_learning_rates(
        {.shape = ScheduleShape::cosine, .warmup_steps = 2, .total_steps = 6});
    const auto usual = built(v.config, v.spec, context);
    const auto whole = built(v.config, v.spec, context, UpdateCapture::always);
    for (std::uint64_t i = 0; i < 8; ++i) {
      CAPTURE(i);
      const TensorMap before = copied(whole->parameters());
      usual->step_fn(context, random_batch(v.spec, 6, 10 + i));
      whole->step_fn(context, random_batch(v.spec, 6, 10 + i));
      check_alike(whole->parameters(), usual->parameters(), tolerance);
      const bool stays = equal({{"bias", before.at("critic.output.bias")}},
                               {{"bias", whole->parameters().at("critic.output.bias")}});
      CHECK(stays == (i == 0 || i >= 6));
    }
  }
}

TEST_CASE("it continues from a saved state as the usual one does") {
  for (const Variant& v : captured_variants()) {
    CAPTURE(v.name);
    ReplicaContext context(nullptr, 3);
    const auto first = built(v.config, v.spec, context, UpdateCapture::always);
    for (std::uint64_t i = 0; i < 4; ++i)
      first->step_fn(context, random_batch(v.spec, 6, 10 + i));
    const auto second = built(v.config, v.spec, context, UpdateCapture::always);
    second->step_fn(context, random_batch(v.spec, 6, 3));
    second->load(copied(first->parameters()), copied(first->optimizer_state()));
    for (std::uint64_t i = 4; i < 7; ++i) {
      const TensorMap batch = random_batch(v.spec, 6, 10 + i);
      CHECK(first->step_fn(context, batch) == second->step_fn(context, batch));
    }
    CHECK(equal(first->parameters(), second->parameters()));
    CHECK(equal(first->optimizer_state(), second->optimizer_state()));
  }
}

TEST_CASE("what is not finite changes no parameter and is named") {
  for (const Variant& v : captured_variants()) {
    CAPTURE(v.name);
    ReplicaContext context(nullptr, 3);
    const auto whole = built(v.config, v.spec, context, UpdateCapture::always);
    whole->step_fn(context, random_batch(v.spec, 6, 10));
    TensorMap batch = random_batch(v.spec, 6, 11);
    batch["reward"][2] = std::numeric_limits<float>::quiet_NaN();
    CHECK(error_of([&] {
            whole->step_fn(context, batch);
          }).find("NaN or infinity in batch tensor 'reward'")
          != std::string::npos);
    TensorMap parameters = copied(whole->parameters());
    const TensorMap optimizer = copied(whole->optimizer_state());
    for (auto& [name, tensor] : parameters)
      if (name.starts_with("critic.") && name.ends_with("output.bias"))
        tensor[0] = std::numeric_limits<double>::quiet_NaN();
    whole->load(parameters, optimizer);
    const std::string error =
        error_of([&] { whole->step_fn(context, random_batch(v.spec, 6, 12)); });
    CHECK(
        error.find("critic_loss is NaN or infinite at update 2: parameter 'critic.output.bias' is "
                   "not finite")
        != std::string::npos);
    for (const auto& [name, tensor] : whole->parameters()) {
      CAPTURE(name);
      CHECK(at::equal(at::nan_to_num(tensor), at::nan_to_num(parameters.at(name))));
    }
  }
}

TEST_CASE("graphs are of GPUs") {
  const std::string reason = StepGraph::unavailable_reason(at::kCPU);
  CHECK(reason == "CUDA graphs are of GPUs, not of cpu");
  CHECK(error_of([] { StepGraph(at::kCPU, [] {}); }) == reason);
  CHECK(!StepGraph::unavailable_reason(at::Device(at::kCUDA, 99)).empty());
}
