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

/// What an agent's update draws, steps and tells. On the CPU, and where other replicas take part,
/// each of these is done at once. A captured update reads nothing before its end; a GPU replays it
/// as one CUDA graph from the fourth on. One thread.
///
/// The body of a captured update makes the same operations each time, but for what it gets from
/// here; another sequence of operations is another variant. It reads no tensor's value, and what it
/// leaves in members is for itself alone: a replay writes to the memory that it had at the capture.
class AgentUpdate {
public:
  using Body = std::function<void(const TensorMap& batch)>;

  /// `options`: of the parameters. `random` outlives this.
  void build(const at::TensorOptions& options, Random& random, bool captured);
  /// Makes update `number`, counted from 1. The batch of a captured one is on the parameters'
  /// device, each tensor always in the same memory. Throws what ParameterGroup::step() throws; a
  /// captured update has then changed no parameter.
  void make(const TensorMap& batch, int variant, std::int64_t number, const Body& body);

  // For the body

  /// Standard normal numbers of the parameters' type, on their device.
  at::Tensor normal(at::IntArrayRef sizes);
  PictureShifts shifts(std::int64_t pictures, int pixels);
  /// A number that the host knows, [], of the parameters' type. `value` is called in each update
  /// and must not refer to what only the body has.
  at::Tensor number(std::function<double()> value);
  /// ParameterGroup::step(). `loss`: one number.
  void step(ParameterGroup& group, const char* loss_name, const at::Tensor& loss);
  void tell(const char* metric, const at::Tensor& value); // one number
  void tell_rows(const at::Tensor& values);               // [batch]

  // After make()

  /// The newest value of each metric, which another variant may have told.
  const Metrics& metrics() const { return metrics_; }
  /// Those of tell_rows(), float64 on the CPU; undefined: the update did not call it.
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
  struct Variant { // in the order of the body's calls
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

  // Of captured updates
  TensorMap batch_;
  at::Tensor report_;                        // float64 [kSlots + batch]
  at::Tensor host_numbers_, device_numbers_; // float32 [kNumbers]
  at::Tensor problem_;                       // float32 [1]: 1 once a step was left out
  std::map<int, Variant> variants_;
  Variant* current_ = nullptr;
  bool capturing_ = false;
  std::size_t next_input_ = 0, next_number_ = 0, next_step_ = 0, next_told_ = 0;
  std::int64_t next_slot_ = 0;
};

} // namespace troupe::learner
