#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "env/caster/kernels/write_bytes.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h; compiled once per instruction set.
#include "env/caster/kernels/pixel-inl.hpp"
#include "env/caster/picture.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {
namespace {

using Bytes = hn::Rebind<std::uint8_t, IntegerTag>;

void write_bytes_of_target(const std::int32_t* colours, int count, int shift, bool grey,
                           std::uint8_t* out) {
  const Integer byte(255);
  const auto one = [&](const std::int32_t* from) HWY_ATTR {
    const Integer colour = load_int<Real>(from);
    if (!grey)
      return hn::ShiftRightSame(colour.v, shift);
    return luma<Real>(colour).v;
  };
  int x = 0;
  for (; x + kLanes<Real> <= count; x += kLanes<Real>)
    hn::StoreU(hn::DemoteTo(Bytes(), hn::And(one(colours + x), byte.v)), Bytes(), out + x);
  if (x < count) { // otherwise there is room in the picture's margin
    HWY_ALIGN std::uint8_t rest[kLanes<Real>];
    hn::StoreU(hn::DemoteTo(Bytes(), hn::And(one(colours + x), byte.v)), Bytes(), rest);
    std::copy_n(rest, count - x, out + x);
  }
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::env::caster {

HWY_EXPORT(write_bytes_of_target);

void write_bytes(const std::int32_t* colours, int count, int shift, bool grey, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(write_bytes_of_target)(colours, count, shift, grey, out);
}

} // namespace troupe::env::caster
#endif
