#include "tests/doctest_torch.hpp"

#include <cmath>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include "learner/device/checked_copy.hpp"
#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {

TEST_CASE("NaN and infinity are found in every layout and type, by a check and by a copy") {
  for (const float bad : {NAN, INFINITY, -INFINITY})
    for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
      for (const auto layout : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        const at::Tensor from = at::ones({2, 3, 4, 5}, at::TensorOptions(type)).contiguous(layout);
        at::Tensor to = at::ones({2, 3, 4, 5}, at::TensorOptions(type));
        CHECK(all_finite(from));
        CHECK(checked_copy(from, to));
        from[1][2][3][4] = bad;
        CHECK_FALSE(all_finite(from));
        CHECK_FALSE(all_finite(from.transpose(0, 3).slice(0, 1, 5, 3)));
        CHECK_FALSE(all_finite(from, FiniteCheck::on_cpu));
        CHECK_FALSE(checked_copy(from, to));
        CHECK(at::equal(to[0], from[0]));
      }
  CHECK(all_finite(at::ones({3}, at::TensorOptions(at::kLong))));
}

TEST_CASE("Tensors on other devices are read unless the caller does not wait for them") {
  const at::Tensor elsewhere = at::ones({3}, at::TensorOptions(at::kFloat).device(at::kMeta));
  CHECK(all_finite(elsewhere, FiniteCheck::on_cpu));
  CHECK_THROWS(all_finite(elsewhere)); // this device has no values that could be read
}

} // namespace troupe::learner
