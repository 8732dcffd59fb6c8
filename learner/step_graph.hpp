#pragma once

#include <functional>
#include <string>

#include <c10/core/Device.h>

namespace troupe::learner {

/// Work on a GPU, captured once as a CUDA graph and made again with one call by the host. One
/// thread.
class StepGraph {
public:
  /// Why there are no graphs on that device; "" where there are.
  static std::string unavailable_reason(const at::Device& device);

  /// Captures what `body` does, without its being done. It reads and writes tensors that stay where
  /// they are as long as this lives, draws no random numbers, and asks for no value of a tensor.
  /// What it does has been done before, on the same shapes, so that libraries have set up what they
  /// need. Throws what `body` throws, std::runtime_error for what cannot be captured.
  StepGraph(const at::Device& device, const std::function<void()>& body);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Does it, in the order of the current stream; does not wait.
  void replay();

private:
  void* graph_ = nullptr;
};

} // namespace troupe::learner
