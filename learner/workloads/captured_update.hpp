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

/// A classifier's update (forward, loss, backward, clipping, optimizer) that the host reads once,
/// at its end. On a GPU the fourth one is captured as a CUDA graph, and replayed from then on; the
/// graph keeps memory for one batch's activations. Elsewhere the same operations run one by one.
/// The results and the optimizer's state are those of WrappedOptimizer::step(), and the two kinds
/// of update may alternate. Make another one where the optimizer's state was loaded, since a graph
/// holds addresses. One thread.
class CapturedUpdate {
public:
  /// Of a batch, scalars [].
  struct Outcome {
    at::Tensor loss; // backward() starts here
    at::Tensor accuracy;
  };
  /// Gets rows and labels on the device. It must draw no random numbers, and read no tensor's value
  /// on the host.
  using Forward = std::function<Outcome(const at::Tensor& rows, const at::Tensor& labels)>;
  struct Report {
    double loss = 0;
    double accuracy = 0;
  };

  /// Whether this optimizer steps alone, by a rule that needs no read by the host.
  static bool supports(WrappedOptimizer& optimizer);

  /// For an optimizer that it supports(), which outlives it, with the parameters on `device`.
  CapturedUpdate(WrappedOptimizer& optimizer, const at::Device& device, Forward forward);
  ~CapturedUpdate();
  CapturedUpdate(const CapturedUpdate&) = delete;
  CapturedUpdate& operator=(const CapturedUpdate&) = delete;

  /// Batches have the shapes and types of the first one.
  bool takes(const at::Tensor& rows, const at::Tensor& labels) const;

  /// An update by a batch that it takes(), on any device. A gradient that is not finite throws what
  /// WrappedOptimizer::step() throws. Neither with it nor with such a loss, which the caller has to
  /// look at, do the parameters change.
  Report make(const at::Tensor& rows, const at::Tensor& labels);

private:
  /// Numbers of the host that each update needs. Pinned for a GPU.
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
  std::vector<at::Tensor> gradients_; // that the graph writes, [parameter]
  std::unique_ptr<StepGraph> graph_;
};

} // namespace troupe::learner
