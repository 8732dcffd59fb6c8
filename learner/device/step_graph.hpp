#pragma once

#include <functional>
#include <string>

#include <c10/core/Device.h>

namespace troupe::learner {

/// Whether an update runs without the host reading values in between, as a CUDA graph requires.
enum class UpdateCapture {
  where_it_pays, // for a single replica on a GPU
  always,        // on any device; without graphs, kernels run one by one (for tests)
  never
};

/// Whether a replica that steps alone makes such updates on this device.
inline bool captures(UpdateCapture capture, const at::Device& device) {
  return capture == UpdateCapture::always
         || (capture == UpdateCapture::where_it_pays && device.is_cuda());
}

/// Work on a GPU that is captured once as a CUDA graph, and then repeated by one call of the host.
/// One thread.
class StepGraph {
public:
  /// Returns why graphs are not available on the device, or "" if they are.
  static std::string unavailable_reason(const at::Device& device);

  /// Captures the operations of `body` without executing them. `body` must use tensors that keep
  /// their memory while this object exists, must not draw random numbers, and must not read a
  /// tensor's value on the host. It must have run before with the same shapes, so that libraries
  /// are set up. Throws the exceptions of `body`, and std::runtime_error for operations that cannot
  /// be captured.
  StepGraph(const at::Device& device, const std::function<void()>& body);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Repeats the work in the order of the current stream. Does not wait.
  void replay();

private:
  void* graph_ = nullptr;
};

} // namespace troupe::learner
