#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// The inputs of a DeviceOptimizer that vary between steps, on the parameters' device.
struct DeviceStep {
  /// [parameter group]; float32 on a GPU and float64 on the CPU, as LibTorch's kernels require.
  at::Tensor rates;
  at::Tensor numbers;  // float32 [parameters], next_numbers(); undefined if that is empty
  at::Tensor left_out; // float32 []: 1 if the step must change nothing, else 0
};

/// An optimizer that can step without the host reading values, so that a CUDA graph can contain the
/// step. State and arithmetic are those of step(); the two kinds of steps may alternate.
class DeviceOptimizer {
public:
  virtual ~DeviceOptimizer() = default;
  /// Returns the number of each parameter's next update, in order: 1, 2, …. Empty: the rule does
  /// not need them.
  virtual std::vector<float> next_numbers() const { return {}; }
  /// Steps the parameters that have a gradient. Missing state is created here, so the first call
  /// must precede a capture. The learning rates in the options are ignored.
  virtual void step_on_device(const DeviceStep& step) = 0;
  /// Call this after a step_on_device() (or its replay) that was not left out.
  virtual void count_step() {}
};

} // namespace troupe::learner
