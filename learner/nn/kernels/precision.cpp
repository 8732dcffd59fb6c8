#include "learner/nn/kernels/precision.hpp"

#include <stdexcept>

#include <ATen/autocast_mode.h>

#include "learner/nn/kernels/product_choice.hpp"
#include "learner/nn/kernels/rounded_product.hpp"

namespace troupe::learner {

at::ScalarType choose_precision(const std::string& name, at::Device device, bool pays,
                                const std::string& key) {
  if (name == "float32")
    return at::kFloat;
  if (name == "bfloat16")
    return at::kBFloat16;
  if (name == "float64")
    return at::kDouble;
  if (name == "auto")
    return pays && multiplies_bfloat16(device) ? at::kBFloat16 : at::kFloat;
  throw std::invalid_argument(key + " \"" + name
                              + "\" must be \"float32\", \"bfloat16\", \"auto\" or \"float64\"");
}

Rounding choose_rounding(const std::string& precision, at::Device device, bool coarse) {
  const bool automatic = precision == "auto";
  if (precision == "bfloat16" || (automatic && coarse && multiplies_bfloat16(device)))
    return Rounding::one_part;
  const bool splits = device.is_cpu() && multiplies_rounded();
  return splits && (automatic || precision == "bfloat16x3") ? Rounding::two_parts : Rounding::none;
}

bool multiplies_bfloat16(at::Device device) {
  constexpr std::int64_t kRows = 256, kWidth = 512;
  return !device.is_cpu()
         || (has_bfloat16_instructions()
             && measured_products().prefers(Rounding::one_part, kRows, kWidth, kWidth));
}

bool has_bfloat16_instructions() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

Autocast::Autocast(at::ScalarType type, at::Device device)
    : on_(type == at::kBFloat16), device_(device.type()) {
  if (!on_)
    return;
  was_on_ = at::autocast::is_autocast_enabled(device_);
  was_type_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, at::kBFloat16);
}

Autocast::~Autocast() {
  if (!on_)
    return;
  if (at::autocast::decrement_nesting() == 0)
    at::autocast::clear_cache(); // of converted weights, which the next update changes
  at::autocast::set_autocast_enabled(device_, was_on_);
  at::autocast::set_autocast_dtype(device_, was_type_);
}

} // namespace troupe::learner
