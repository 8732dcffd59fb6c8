#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/device/step_graph.hpp"

namespace troupe::learner {

class DeviceOptimizer;
class WrappedOptimizer;

/// A classifier's update (forward, loss, backward, clipping, optimizer) from which the host reads
/// only once, at its end. On a GPU, the fourth update is captured as a CUDA graph, which is then
/// replayed; the graph keeps memory for the activations of one batch. On other devices the same
/// operations run one by one. The results and the optimizer's state are those of
/// WrappedOptimizer::step(), and the two kinds of updates may alternate. Create a new object after
/// loading the optimizer's state, because a graph holds addresses. One thread.
class CapturedUpdate {
public:
  /// The results of a batch, scalars [].
  struct Outcome {
    at::Tensor loss; // backward() starts here
    at::Tensor accuracy;
  };
  /// Receives rows and labels on the device. It must not draw random numbers or read a tensor's
  /// value on the host.
  using Forward = std::function<Outcome(const at::Tensor& rows, const at::Tensor& labels)>;
  struct Report {
    double loss = 0;
    double accuracy = 0;
  };

  /// Whether this optimizer steps alone, by a rule for which the host reads no values.
  static bool supports(WrappedOptimizer& optimizer);

  /// `optimizer` must be one that supports() accepts, and must outlive this object. Its parameters
  /// are on `device`.
  CapturedUpdate(WrappedOptimizer& optimizer, const at::Device& device, Forward forward);
  ~CapturedUpdate();
  CapturedUpdate(const CapturedUpdate&) = delete;
  CapturedUpdate& operator=(const CapturedUpdate&) = delete;

  /// Whether the batch has the shapes and types of the first one.
  bool takes(const at::Tensor& rows, const at::Tensor& labels) const;

  /// Makes an update by a batch that takes() accepts, on any device. Throws the exception of
  /// WrappedOptimizer::step() if a gradient is not finite. The parameters do not change then, nor
  /// if the loss is not finite, which the caller must check.
  Report make(const at::Tensor& rows, const at::Tensor& labels);

private:
  /// Numbers that the host sends for each update. The memory is pinned for a GPU.
  struct Sent {
    Sent(std::size_t count, at::ScalarType type, const at::Device& device);
    void send(const at::Tensor& values);
    at::Tensor host;
    at::Tensor device;
  };

  void bring(const at::Tensor& rows, const at::Tensor& labels);
  void update();
  void replay();

  WrappedOptimizer* optimizer_;
  DeviceOptimizer* rule_;
  at::Device device_;
  Forward forward_;
  Sent rates_;
  Sent numbers_; // DeviceStep::numbers
  at::Tensor rows_;
  at::Tensor labels_;
  at::Tensor report_; // float64: loss, accuracy, norm of the gradients
  std::int64_t updates_ = 0;
  std::vector<at::Tensor> gradients_; // written by the graph, [parameter]
  std::unique_ptr<StepGraph> graph_;
};

} // namespace troupe::learner
