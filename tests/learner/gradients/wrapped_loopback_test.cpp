#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "tests/learner/gradients/wrapped_fixture.hpp"

namespace troupe::learner {
namespace {

using collectives::Means;

/// Checks every option that changes only rounding, on 2 and 4 ranks.
void check_all(Means means) {
  const auto expected = alone(6);
  std::vector<WrappedOptimizerOptions> all(5);
  all[0].overlap = false;
  all[2].accumulate = 3;
  all[3].shard_optimizer_state = true;
  all[4].compression = {.kind = CompressionKind::top_k, .fraction = 1};
  for (auto& options : all) {
    options.bucket_bytes = 2048;
    for (const int replicas : {2, 4}) {
      CAPTURE(replicas);
      const auto found = together(replicas, 6, options, {}, means);
      CHECK(distance(found[0], expected) < 1e-12);
      for (const auto& other : found)
        CHECK(same(other, found[0]));
    }
  }
}

/// Checks every compression over this backend: equal on all ranks, and close to the uncompressed
/// result.
void check_compressed(Means means) {
  const auto expected = alone(6);
  for (const auto kind : {CompressionKind::fp16, CompressionKind::bf16, CompressionKind::power_sgd,
                          CompressionKind::top_k}) {
    CAPTURE(static_cast<int>(kind));
    WrappedOptimizerOptions options;
    options.bucket_bytes = 2048;
    options.compression.kind = kind;
    const auto found = together(2, 6, options, {}, means);
    CHECK(same(found[0], found[1]));
    if (kind == CompressionKind::fp16 || kind == CompressionKind::bf16)
      CHECK(distance(found[0], expected) < 0.01);
  }
}

} // namespace

TEST_CASE("Over shared memory, each exact option equals one replica on the whole batch") {
  check_all(Means::shared_memory);
}

TEST_CASE("Over shared memory, compressed gradients are equal on all replicas") {
  check_compressed(Means::shared_memory);
}

TEST_CASE("Over TCP, each exact option equals one replica on the whole batch"
          * doctest::skip(collectives::kStoreSkipped)) {
  check_all(Means::tcp);
}

TEST_CASE("Over TCP, compressed gradients are equal on all replicas"
          * doctest::skip(collectives::kStoreSkipped)) {
  check_compressed(Means::tcp);
}

} // namespace troupe::learner
