#include "learner/nn/activation_probe.hpp"

#include "tests/doctest_torch.hpp"

#include <torch/types.h>

using namespace troupe::learner;

TEST_CASE("The effective rank counts the singular values that make up 99 percent of the sum") {
  CHECK(effective_rank(at::zeros({4, 3})) == 0);
  CHECK(effective_rank(at::ones({4, 3})) == 1);
  CHECK(effective_rank(at::eye(5)) == 5);
  CHECK(effective_rank(at::diag(at::tensor({50.0, 49.0, 0.5, 0.5}))) == 2);
  CHECK(effective_rank(at::diag(at::tensor({50.0, 48.0, 1.5, 0.5}))) == 3);
}

TEST_CASE("Actions are saturated if they are within a hundredth of a bound of tanh") {
  // The tanh of 2.6 is 0.9890, that of 2.7 is 0.9910.
  CHECK(tanh_saturation(at::full({3, 2}, 5.0)) == 1);
  CHECK(tanh_saturation(at::full({3, 2}, 0.1)) == 0);
  CHECK(tanh_saturation(at::tensor({-2.7, -2.6, 2.6, 2.7, 0.0, 0.99, -1.0, 9.0})) == 3.0 / 8);
}

TEST_CASE("Units are dormant if their output is at most a fortieth of their layer's mean") {
  CHECK(ActivationProbe::active() == nullptr);
  {
    ActivationProbe probe;
    CHECK(ActivationProbe::active() == &probe);
    CHECK_THROWS_AS(ActivationProbe(), std::logic_error);
    CHECK(ActivationProbe::active() == &probe);
    const at::Tensor weight = at::zeros({2, 4});
    CHECK(probe.layer(weight) == nullptr);
    probe.see_units(weight, at::tensor({1.0, -1.0, 0.0, 0.03, 1.0, 3.0, 0.0, 0.0}).view({2, 4}));
    REQUIRE(probe.layer(weight) != nullptr);
    CHECK(probe.layer(weight)->units == 4);
    CHECK(probe.layer(weight)->dormant == 2); // the mean is 0.754
    probe.see_units(weight, at::ones({2, 4}));
    CHECK(probe.layer(weight)->dormant == 0); // the last values count
    at::Tensor channels = at::zeros({2, 3, 4, 4});
    channels.select(1, 1).select(1, 2).fill_(-8);
    const at::Tensor kernel = at::zeros({3, 1, 3, 3});
    probe.see_units(kernel, channels);
    CHECK(probe.layer(kernel)->units == 3);
    CHECK(probe.layer(kernel)->dormant == 2);
    CHECK_FALSE(probe.layer(kernel)->features.defined());
    probe.see_features(weight, at::ones({3, 2}));
    CHECK(probe.layer(weight)->features.defined());
    CHECK_FALSE(probe.layer(weight)->outputs.defined());
    probe.see_features(weight, at::ones({3, 2}), at::full({3, 4}, 7.0));
    CHECK(at::equal(probe.layer(weight)->outputs, at::full({3, 4}, 7.0)));
  }
  CHECK(ActivationProbe::active() == nullptr);
}
