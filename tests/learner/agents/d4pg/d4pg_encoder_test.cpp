#include "tests/doctest_torch.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include "learner/nn/encoder.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe::learner;
using troupe::tests::uniform;

namespace {

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

struct Rig {
  Rig(const std::string& kind, const ImageShape& image, std::int64_t channels, std::int64_t size)
      : shape(kind, image, channels), batch(size) {
    at::set_num_threads(1);
    shape.declare(layout, "encoder");
    flat = uniform({layout.count()}, 1) * 0.3;
    images =
        uniform({batch, image.channels, image.height, image.width}, 2, 0, 255.99).to(at::kByte);
    feature_gradient = uniform({batch, shape.features()}, 3);
    shifts.resize(static_cast<std::size_t>(batch));
    Random random(4);
    draw_shifts(random, 4, shifts);
  }

  struct Outcome {
    at::Tensor features;
    at::Tensor gradient; // flat
  };

  Outcome run(Encoder& encoder, at::ScalarType type) const {
    EncoderTape tape;
    tape.images = images;
    tape.shifts.drawn = shifts;
    const at::Tensor parameters = flat.to(type);
    at::Tensor gradient = at::full_like(parameters, 7); // must be overwritten
    encoder.forward(shape.bind(layout, parameters), tape);
    encoder.backward(shape.bind(layout, parameters), shape.bind(layout, gradient), tape,
                     feature_gradient.to(type));
    return {tape.features.clone(), gradient};
  }

  EncoderShape shape;
  std::int64_t batch;
  ParameterLayout layout;
  at::Tensor flat, images, feature_gradient;
  std::vector<Shift> shifts;
};

} // namespace

TEST_CASE("A shifted image equals a naive shift, for offsets within and beyond the image") {
  const ImageShape shape{2, 7, 9};
  const at::Tensor image = uniform({2, 7, 9}, 1, 0, 255.99).to(at::kByte);
  std::vector<std::uint8_t> scratch(static_cast<std::size_t>(shape.size()));
  at::Tensor out = at::empty({2, 7, 9});
  for (int y = -12; y <= 12; y += 2)
    for (int x = -12; x <= 12; ++x) {
      shift_image(image.const_data_ptr<std::uint8_t>(), shape, {y, x}, scratch.data(),
                  out.mutable_data_ptr<float>());
      double worst = 0;
      for (int c = 0; c < 2; ++c)
        for (int r = 0; r < 7; ++r)
          for (int k = 0; k < 9; ++k) {
            const std::uint8_t pixel =
                image.const_data_ptr<std::uint8_t>()[(c * 7 + std::clamp(r + y, 0, 6)) * 9
                                                     + std::clamp(k + x, 0, 8)];
            worst = std::max(worst, std::abs(out.const_data_ptr<float>()[(c * 7 + r) * 9 + k]
                                             - (pixel / 255.0 - 0.5)));
          }
      CHECK(worst < 1e-6);
    }
}

TEST_CASE("Shifts are uniform over all offsets and depend on the seed") {
  std::vector<Shift> shifts(9 * 9 * 200);
  Random random(5);
  draw_shifts(random, 4, shifts);
  std::vector<int> seen(81, 0);
  for (const Shift& s : shifts) {
    REQUIRE(std::abs(s.y) <= 4);
    REQUIRE(std::abs(s.x) <= 4);
    ++seen[static_cast<std::size_t>((s.y + 4) * 9 + s.x + 4)];
  }
  for (const int count : seen) {
    CHECK(count > 120); // expected 200, standard deviation 14
    CHECK(count < 280);
  }
  std::vector<Shift> again(shifts.size());
  Random same(5);
  draw_shifts(same, 4, again);
  CHECK(std::equal(shifts.begin(), shifts.end(), again.begin(),
                   [](const Shift& a, const Shift& b) { return a.x == b.x && a.y == b.y; }));
  const std::uint64_t state = random.state();
  const std::uint64_t next = random.next();
  random.set_state(state);
  CHECK(random.next() == next);
}

TEST_CASE("The patch encoder gives the features and gradients of LibTorch's convolutions") {
  for (const Rig& rig : {Rig("stride4", {3, 40, 44}, 8, 11), Rig("stride4", {1, 64, 64}, 32, 3),
                         Rig("drq", {3, 21, 24}, 8, 9)}) {
    const auto exact = rig.run(*make_torch_encoder(rig.shape, at::kDouble), at::kDouble);
    const auto patches = rig.run(*make_patch_encoder(rig.shape), at::kFloat);
    const auto convolutions = rig.run(*make_torch_encoder(rig.shape, at::kFloat), at::kFloat);
    const double scale = exact.gradient.abs().max().item<double>();
    CHECK(exact.features.abs().max().item<double>() > 0.01);
    CHECK(largest_difference(patches.features, exact.features) < 1e-5);
    CHECK(largest_difference(convolutions.features, exact.features) < 1e-5);
    CHECK(largest_difference(patches.gradient, exact.gradient) < 1e-5 * scale);
    CHECK(largest_difference(convolutions.gradient, exact.gradient) < 1e-5 * scale);
    const auto coarse = rig.run(*make_torch_encoder(rig.shape, at::kBFloat16), at::kFloat);
    CHECK(largest_difference(coarse.features, exact.features)
          < 0.03 * exact.features.abs().max().item<double>());
  }
}

TEST_CASE("With AMX, features and gradients are those of factors rounded to bfloat16") {
  if (!multiplies_rounded()) {
    MESSAGE("skipped: no AMX here");
    return;
  }
  for (const Rig& rig : {Rig("stride4", {3, 40, 44}, 8, 11), Rig("stride4", {1, 64, 64}, 32, 3),
                         Rig("drq", {3, 21, 24}, 40, 9), Rig("elu", {2, 40, 33}, 20, 17)}) {
    const auto exact = rig.run(*make_patch_encoder(rig.shape), at::kFloat);
    const auto rounded = rig.run(*make_rounded_encoder(rig.shape), at::kFloat);
    const auto off = [](const at::Tensor& found, const at::Tensor& wanted) {
      return ((found - wanted).norm() / wanted.norm()).item<double>();
    };
    CHECK(off(rounded.features, exact.features) > 1e-5);
    CHECK(off(rounded.features, exact.features) < 0.01);
    // A ReLU near 0 may open or close.
    CHECK(off(rounded.gradient, exact.gradient) < (rig.shape.kind() == "elu" ? 0.01 : 0.1));
    const int before = at::get_num_threads();
    at::set_num_threads(3);
    const auto three = rig.run(*make_rounded_encoder(rig.shape), at::kFloat);
    at::set_num_threads(before);
    CHECK(at::equal(three.features, rounded.features));
  }
}

TEST_CASE("Convolutions that read activations in place equal LibTorch's in bfloat16") {
  if (!multiplies_rounded()) {
    MESSAGE("skipped: no AMX here");
    return;
  }
  for (const Rig& rig : {Rig("drq", {9, 84, 84}, 32, 5), Rig("drq", {3, 21, 24}, 64, 9),
                         Rig("drq", {12, 33, 47}, 32, 2), Rig("drq", {1, 150, 17}, 32, 1)}) {
    REQUIRE(has_direct_encoder(rig.shape));
    const auto exact = rig.run(*make_torch_encoder(rig.shape, at::kDouble), at::kDouble);
    const auto theirs = rig.run(*make_torch_encoder(rig.shape, at::kBFloat16), at::kFloat);
    const auto direct = make_direct_encoder(rig.shape);
    const auto ours = rig.run(*direct, at::kFloat);
    const auto off = [&](const at::Tensor& found, const at::Tensor& wanted) {
      return ((found - wanted).norm() / wanted.norm()).item<double>();
    };
    CHECK(off(ours.features, exact.features) > 1e-5);
    CHECK(off(ours.features, exact.features) < 1.2 * off(theirs.features, exact.features));
    CHECK(off(ours.gradient, exact.gradient) < 1.2 * off(theirs.gradient, exact.gradient));
    const auto again = rig.run(*direct, at::kFloat); // with memory that was used
    CHECK(at::equal(again.features, ours.features));
    CHECK(at::equal(again.gradient, ours.gradient));
    const int before = at::get_num_threads();
    at::set_num_threads(3);
    const auto three = rig.run(*make_direct_encoder(rig.shape), at::kFloat);
    at::set_num_threads(before);
    CHECK(at::equal(three.features, ours.features));
    CHECK(at::allclose(three.gradient, ours.gradient, 1e-3,
                       1e-3 * ours.gradient.abs().max().item<double>()));
  }
  CHECK_FALSE(has_direct_encoder(Rig("drq", {3, 21, 24}, 40, 1).shape));
  CHECK_FALSE(has_direct_encoder(Rig("elu", {3, 40, 40}, 32, 1).shape));
  CHECK_FALSE(has_direct_encoder(Rig("stride4", {3, 40, 40}, 32, 1).shape));
}

TEST_CASE("The gradient of the convolutions matches finite differences") {
  const Rig rig("stride4", {2, 32, 32}, 4, 2);
  const auto encoder = make_torch_encoder(rig.shape, at::kDouble);
  const auto outcome = rig.run(*encoder, at::kDouble);
  EncoderTape tape;
  tape.images = rig.images;
  tape.shifts.drawn = rig.shifts;
  const at::Tensor flat = rig.flat.to(at::kDouble);
  const auto tensors = rig.shape.bind(rig.layout, flat);
  const auto loss = [&] {
    encoder->forward(tensors, tape);
    return (tape.features * rig.feature_gradient).sum().item<double>();
  };
  for (std::int64_t i = 0; i < flat.numel(); i += 13) {
    double& value = flat.mutable_data_ptr<double>()[i];
    const double kept = value;
    value = kept + 1e-6;
    const double above = loss();
    value = kept - 1e-6;
    const double below = loss();
    value = kept;
    CHECK(outcome.gradient.const_data_ptr<double>()[i]
          == doctest::Approx((above - below) / 2e-6).epsilon(1e-4));
  }
}

TEST_CASE("Features do not depend on the number of threads") {
  const Rig rig("stride4", {3, 40, 40}, 8, 40);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = rig.run(*make_patch_encoder(rig.shape), at::kFloat);
  at::set_num_threads(3);
  const auto three = rig.run(*make_patch_encoder(rig.shape), at::kFloat);
  at::set_num_threads(before);
  CHECK(at::equal(one.features, three.features));
  CHECK(largest_difference(one.gradient, three.gradient)
        < 1e-5 * one.gradient.abs().max().item<double>());
}
