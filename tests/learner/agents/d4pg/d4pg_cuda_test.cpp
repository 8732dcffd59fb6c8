#include "tests/doctest_torch.hpp"

#include "collectives/communicator.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

TEST_CASE(
    "Updates of D4PG on a GPU, eager and as a graph, give the parameters that the CPU gives") {
  if (collectives::cuda_device_count() == 0) {
    MESSAGE("skipped: " << collectives::nccl_unavailable_reason());
    return;
  }
  D4pgConfig pixels = small_config();
  pixels.encoder_channels = 8;
  pixels.feature_size = 12;
  pixels.precision = "float32";
  const std::pair<D4pgConfig, replay::TransitionSpec> kinds[] = {{small_config(), state_spec(7, 2)},
                                                                 {pixels, pixel_spec(40, 3, 2)}};
  for (const auto& [config, spec] : kinds)
    for (const bool falls : {false, true}) {
      CAPTURE(falls);
      ReplicaContext cpu(nullptr, 3), gpu(nullptr, 3, at::Device(at::kCUDA, 0));
      for (ReplicaContext* context : {&cpu, &gpu})
        if (falls)
          context->set_learning_rates(
              {.shape = ScheduleShape::cosine, .warmup_steps = 2, .total_steps = 7});
      const auto here = built(config, spec, cpu);
      const auto there = built(config, spec, gpu);
      for (std::uint64_t i = 0; i < 8; ++i) {
        const TensorMap batch = random_batch(spec, 6, 10 + i);
        const double loss = here->step_fn(cpu, batch).at("critic_loss");
        CHECK(there->step_fn(gpu, batch).at("critic_loss") == doctest::Approx(loss).epsilon(1e-4));
      }
      const TensorMap expected = here->parameters();
      for (const auto& [name, tensor] : there->parameters()) {
        CAPTURE(name);
        CHECK(tensor.is_cuda());
        CHECK(at::allclose(tensor.cpu(), expected.at(name), 1e-3, 1e-4));
      }
      CHECK(there->policy_parameters().is_cpu());
    }
}
