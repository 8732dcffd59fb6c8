#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/device/step_graph.hpp"
#include "learner/metrics.hpp"
#include "learner/nn/encoder.hpp"
#include "learner/tensor_map.hpp"

namespace troupe::learner {

class ParameterGroup;

/// What the body of an agent's update uses to draw random numbers, step optimizers and report
/// metrics. On the CPU, and when other replicas take part, each call takes effect immediately. The
/// host reads no tensor during a captured update. A GPU replays it as one CUDA graph from the
/// fourth update on. Not thread-safe.
///
/// The body of a captured update must perform the same operations each time, apart from the values
/// that it gets from this class. A different sequence of operations must be a different variant.
/// The body must not read the value of a tensor. Tensors that it stores in members may only be used
/// by the body itself, because a replay writes to the memory used at capture.
class AgentUpdate {
public:
  using Body = std::function<void(const TensorMap& batch)>;

  /// `options`: options of the parameters. `random` must outlive this object.
  void build(const at::TensorOptions& options, Random& random, bool captured);
  /// Makes update number `number`, counted from 1. For a captured update, the batch must be on the
  /// parameters' device and each tensor always in the same memory. Throws the same exceptions as
  /// ParameterGroup::step(); a captured update has then changed no parameter.
  void make(const TensorMap& batch, int variant, std::int64_t number, const Body& body);
  /// Later updates are captured again. Must be called if other code uses tensors that the body
  /// stores in members, because it may give them other memory.
  void forget_captures();

  // Functions for the body:

  /// Standard normal numbers of the parameters' type and device.
  at::Tensor normal(at::IntArrayRef sizes);
  PictureShifts shifts(std::int64_t pictures, int pixels);
  /// Returns a number that the host computes as a tensor [] of the parameters' type. `value` is
  /// called in each update and must not refer to local variables of the body.
  at::Tensor number(std::function<double()> value);
  /// Calls ParameterGroup::step(). `loss` must have one element.
  void step(ParameterGroup& group, const char* loss_name, const at::Tensor& loss);
  void tell(const char* metric, const at::Tensor& value); // one number
  void tell_rows(const at::Tensor& values);               // [batch]

  // Functions for use after make():

  /// The newest value of each metric. A metric that this variant does not report keeps its last
  /// value from another one.
  const Metrics& metrics() const { return metrics_; }
  /// The values passed to tell_rows(), float64 on the CPU; undefined if the update did not call it.
  const at::Tensor& rows() const { return rows_; }

private:
  struct Input {
    std::function<at::Tensor()> draw; // on the CPU
    at::Tensor host, device;
  };
  struct Step {
    ParameterGroup* group = nullptr;
    const char* loss_name = nullptr;
    std::int64_t loss = 0, norm = 0; // slots of the report
  };
  struct Told {
    std::string metric;
    std::int64_t slot = 0;
  };
  struct Variant { // entries are in the order of the body's calls
    std::int64_t made = 0;
    std::vector<Input> inputs;
    std::vector<std::function<double()>> numbers;
    std::vector<Step> steps;
    std::vector<Told> told;
    std::int64_t rows = 0;
    std::unique_ptr<StepGraph> graph;
  };

  void bring(const TensorMap& batch);
  void run(const Body& body);
  void capture(const Body& body);
  void refill();
  void finish();
  at::Tensor input(std::function<at::Tensor()> draw);
  at::Tensor number_slot(std::function<double()> value); // float32 [1]
  std::int64_t report(const at::Tensor& value);

  at::TensorOptions options_;
  Random* random_ = nullptr;
  bool captured_ = false;
  std::int64_t number_ = 0;
  Metrics metrics_;
  at::Tensor rows_;

  // Members of captured updates:
  TensorMap batch_;
  at::Tensor report_;                        // float64 [kSlots + batch]
  at::Tensor host_numbers_, device_numbers_; // float32 [kNumbers]
  at::Tensor problem_;                       // float32 [1]: 1 after a step was skipped
  std::map<int, Variant> variants_;
  Variant* current_ = nullptr;
  bool capturing_ = false;
  std::size_t next_input_ = 0, next_number_ = 0, next_step_ = 0, next_told_ = 0;
  std::int64_t next_slot_ = 0;
};

} // namespace troupe::learner
