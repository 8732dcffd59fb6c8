// Each lane computes exactly what scalar code computes, on every instruction set of this processor.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/env/caster/core_lanes_test.cpp"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h.
#include "env/caster/kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {
namespace {

template <class R>
R formula(R a, R b) {
  const R power_of_both = power(abs(a), b) + exp2(b) + log2(abs(a) + R(.1F));
  const Vec3<R> v = normalized(cross(Vec3<R>{a, b, a * b}, Vec3<R>{b, a, R(1.0F)}));
  const IntOf<R> whole = to_nearest(a * R(10.0F)) + shift_left<2>(to_integer(b));
  return select((a < b) | (v.x > R(.5F)), power_of_both, dot(v, v) * sqrt(abs(b)))
         + to_real(whole & IntOf<R>(255)) + copysign(floor(a), b) + clamp(a / b, R(-1.0F), R(1.0F));
}

/// How many of 160 results differ between lanes and scalar code.
int differing_lanes() {
  int differing = 0;
  for (int i = 0; i < 160; i += kLanes<Real>) {
    float a[16];
    float b[16];
    float out[16];
    for (int k = 0; k < kLanes<Real>; ++k) {
      a[k] = .37F * static_cast<float>(i + k) - 29.0F;
      b[k] = 3.1F - .041F * static_cast<float>(i + k);
    }
    store(formula(load<Real>(a), load<Real>(b)), out);
    for (int k = 0; k < kLanes<Real>; ++k)
      differing += out[k] == formula<float>(a[k], b[k]) ? 0 : 1;
    const std::uint32_t below = bits(load<Real>(a) < load<Real>(b));
    for (int k = 0; k < kLanes<Real>; ++k)
      differing += (below >> k & 1) == (a[k] < b[k] ? 1U : 0U) ? 0 : 1;
    differing += bits(mask_of_bits<Real>(below)) == below ? 0 : 1;
  }
  return differing;
}

/// Largest absolute error of log2 and largest relative error of exp2.
void largest_errors(double errors[2]) {
  errors[0] = errors[1] = 0;
  for (float x = 1e-6F; x < 100; x *= 1.0007F) {
    errors[0] = std::max(
        errors[0], std::abs(static_cast<double>(log2(x)) - std::log2(static_cast<double>(x))));
    const float y = x - 50;
    errors[1] = std::max(
        errors[1], std::abs(static_cast<double>(exp2(y)) / std::exp2(static_cast<double>(y)) - 1));
  }
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <doctest/doctest.h>

namespace troupe::env::caster {
HWY_EXPORT(differing_lanes);
HWY_EXPORT(largest_errors);
} // namespace troupe::env::caster

TEST_CASE("Each vector lane computes the same bits as scalar code at every vector width") {
  using namespace troupe::env::caster;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    CAPTURE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    CHECK(HWY_DYNAMIC_DISPATCH(differing_lanes)() == 0);
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST_CASE("log2 and exp2 stay within their error bounds") {
  using namespace troupe::env::caster;
  double errors[2];
  HWY_DYNAMIC_DISPATCH(largest_errors)(errors);
  CHECK(errors[0] < 4e-6);
  CHECK(errors[1] < 3e-7);
}
#endif
