#include "tests/doctest_torch.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/replicas.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

TensorMap after_100_steps(const D4pgConfig& config, const replay::TransitionSpec& spec,
                          int replicas, int which) {
  Replicas replicator(
      [&] {
        return std::make_unique<FedReplica>(make_d4pg_agent(config)->make_replica(spec), spec);
      },
      replicas);
  replicator.run(100);
  return copied(replicator.replica(which).parameters());
}

} // namespace

TEST_CASE("Two replicas on half the batch equal one on the whole after 100 steps in float64") {
  D4pgConfig states = small_config();
  states.precision = "float64";
  states.gradient_norm = 0.05; // clipping uses the averaged gradient
  D4pgConfig pixels = states;
  pixels.encoder_channels = 4;
  pixels.feature_size = 8;
  pixels.shift_pixels = 0; // each replica would draw its own shifts
  for (const auto& [config, spec] :
       {std::pair{states, state_spec(5, 2)}, std::pair{pixels, pixel_spec(32, 1, 2)}}) {
    const TensorMap whole = after_100_steps(config, spec, 1, 0);
    const TensorMap halves = after_100_steps(config, spec, 2, 0);
    CHECK(equal(halves, after_100_steps(config, spec, 2, 1))); // and they agree bit for bit
    for (const auto& [name, tensor] : whole) {
      CAPTURE(name);
      const double scale = tensor.abs().max().item<double>();
      CHECK((tensor - halves.at(name)).abs().max().item<double>() < 1e-5 * scale);
    }
  }
}
