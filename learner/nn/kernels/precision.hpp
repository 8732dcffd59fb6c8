#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "learner/nn/kernels/rounding.hpp"

namespace troupe::learner {

/// Returns the type in which a network computes: "float32", "bfloat16" (float32 parameters, layers
/// by autocast), "auto" (bfloat16 if the device multiplies bfloat16 faster and `pays`), or
/// "float64" (everything, for tests). Throws std::invalid_argument naming `key` for another name.
at::ScalarType choose_precision(const std::string& name, at::Device device, bool pays,
                                const std::string& key);

/// Returns how the linear layers of an agent multiply: "bfloat16": in one part; "bfloat16x3": in
/// two where the device has AMX; "auto": in one if `coarse` and the device multiplies bfloat16
/// faster, otherwise like "bfloat16x3"; others: none.
Rounding choose_rounding(const std::string& precision, at::Device device, bool coarse = false);

/// Whether wide products are faster in bfloat16 than in float32: on GPUs, and on processors where
/// measured_products() found it.
bool multiplies_bfloat16(at::Device device);

/// Whether the processor has instructions for bfloat16 products (AVX512-BF16).
bool has_bfloat16_instructions();

/// While this object lives, this thread's layers on `device` compute in bfloat16. Has no effect for
/// other types.
class Autocast {
public:
  Autocast(at::ScalarType type, at::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

private:
  bool on_;
  at::DeviceType device_;
  bool was_on_ = false;
  at::ScalarType was_type_ = at::kFloat;
};

} // namespace troupe::learner
