#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// In what a network computes: "float32", "bfloat16" (parameters float32, layers by autocast),
/// "auto" (bfloat16 where the device multiplies it and `pays`), "float64" (everything, for tests).
/// A rule and not a stop-watch, so that a run repeated gives the same bits. Throws
/// std::invalid_argument naming `key` for another name.
at::ScalarType choose_precision(const std::string& name, at::Device device, bool pays,
                                const std::string& key);

/// Whether products of bfloat16 are instructions of the device: GPUs, and processors with
/// AVX512-BF16.
bool multiplies_bfloat16(at::Device device);

/// While it lives, this thread's layers on `device` compute in bfloat16. With another type nothing
/// happens.
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
