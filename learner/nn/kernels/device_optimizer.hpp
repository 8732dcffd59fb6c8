#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// What varies between the steps of a DeviceOptimizer, on the parameters' device.
struct DeviceStep {
  /// [parameter group]; float32 on a GPU, float64 on the CPU: as LibTorch's kernels take them.
  at::Tensor rates;
  at::Tensor numbers;  // float32 [parameters], next_numbers(); undefined where that is empty
  at::Tensor left_out; // float32 []: 1 where the step must change nothing, else 0
};

/// An optimizer that can make its step without a read by the host, so that a CUDA graph can hold
/// it. The state and the arithmetic are those of step(); the two kinds of step may alternate.
class DeviceOptimizer {
public:
  virtual ~DeviceOptimizer() = default;
  /// For each parameter, in order, the number of its next update: 1, 2, …. Empty: the rule needs
  /// none.
  virtual std::vector<float> next_numbers() const { return {}; }
  /// Steps the parameters that have a gradient. State that is missing is made here, so a first call
  /// must come before a capture. Learning rates in the options do not count.
  virtual void step_on_device(const DeviceStep& step) = 0;
  /// After a step_on_device() (or its replay) that was not left out.
  virtual void count_step() {}
};

} // namespace troupe::learner
