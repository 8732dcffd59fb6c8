#pragma once

#include <functional>
#include <string>

#include <c10/core/Device.h>

namespace troupe::learner {

/// Whether an update is made without a read by the host in between, as a CUDA graph needs it.
enum class UpdateCapture {
  where_it_pays, // by a single replica on a GPU
  always,        // on any device, as kernels one by one where there are no graphs; for tests
  never
};

/// Whether a replica that steps alone makes such updates on that device.
inline bool captures(UpdateCapture capture, const at::Device& device) {
  return capture == UpdateCapture::always
         || (capture == UpdateCapture::where_it_pays && device.is_cuda());
}

/// Work on a GPU, captured once as a CUDA graph and made again with one call by the host. One
/// thread.
class StepGraph {
public:
  /// Why there are no graphs on that device; "" where there are.
  static std::string unavailable_reason(const at::Device& device);

  /// Captures the operations of `body` without executing them. It must use tensors that keep their
  /// memory while this exists, draw no random numbers, and read no tensor's value on the host. It
  /// must have run before on the same shapes, so that libraries are set up. Throws exceptions of
  /// `body`, and std::runtime_error on operations that cannot be captured.
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
