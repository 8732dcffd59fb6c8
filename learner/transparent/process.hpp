#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/transparent/gradient_average.hpp"
#include "learner/transparent/settings.hpp"

namespace torch::optim {
class Optimizer;
class OptimizerParamGroup;
} // namespace torch::optim
namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner::transparent {

/// One process of a LibTorch training program that runs as several. All ranks run the same
/// program, and so come to its optimizers, steps and epochs in the same order. One thread at a
/// time. Throws CollectiveError if ranks differ, are late or lost; every rank must then end.
class TransparentProcess {
public:
  using Closure = std::function<at::Tensor()>;
  using Sampler = std::function<std::optional<std::vector<std::size_t>>(std::size_t batch_size)>;

  /// `another` makes a communicator of the same ranks beside the first, on all of them; at most
  /// kChannels times. Lets the default random generator of every rank continue from rank 0's state:
  /// random numbers before the first step (data, initial parameters) are equal.
  TransparentProcess(std::unique_ptr<collectives::Communicator> communicator,
                     GradientAverage::MakeChannel another, Settings settings);
  ~TransparentProcess();

  int rank() const;
  int size() const;

  /// LibTorch's `step` on averaged gradients. With a closure they are averaged after each of its
  /// evaluations, and its loss is; without, before. The first step sets the parameters to rank 0's.
  at::Tensor step(torch::optim::Optimizer& optimizer, const Closure& closure,
                  const std::string& kind, const std::function<at::Tensor(Closure)>& original);

  /// Parameters came to an optimizer: they and the modules' buffers become rank 0's, before the
  /// first forward pass.
  void group_added(torch::optim::Optimizer& optimizer, const torch::optim::OptimizerParamGroup&);

  /// A module has a buffer: it becomes rank 0's with each step, if asked.
  void buffer(const at::Tensor& tensor);

  /// This rank's part of a sampler's next batch; all of it while gradients are off (evaluation).
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size, const Sampler& original);

  /// Reshuffles equally on all ranks, by rank 0's generator.
  void reset(const std::function<void()>& original);

  /// Says once that streams are not shared.
  void stream();

  /// The seed that rank `rank()` uses where the program says `seed`: others than rank 0 draw other
  /// numbers once training has begun.
  std::uint64_t shifted(const void* generator, std::uint64_t seed) const;

  /// The program ends well: waits for the other ranks to do so too.
  void end();
  /// The program fails: informs the others.
  void abort(const std::string& reason);

private:
  struct Tracked {
    int number = 0; // in the order of construction
    std::string kind;
    std::int64_t steps = 0;
    std::size_t parameters = 0;           // broadcast so far
    GradientAverage* gradients = nullptr; // of gradients_; from the first step on
  };

  Tracked& track(const torch::optim::Optimizer& optimizer, bool again);
  void say(const std::string& text) const;
  bool share_parameters(torch::optim::Optimizer& optimizer, Tracked& tracked);
  void compare_parameters(torch::optim::Optimizer& optimizer, const Tracked& tracked);
  void share_buffers();
  GradientAverage& gradients_of(Tracked& tracked);
  void begin_training();

  static constexpr int kChannels = 4;

  std::unique_ptr<collectives::Communicator> communicator_;
  GradientAverage::MakeChannel another_;
  Settings settings_;
  std::map<const torch::optim::Optimizer*, Tracked>
      optimizers_;                                          // as many as were ever alive at once
  std::vector<std::unique_ptr<GradientAverage>> gradients_; // by first step, kept to be drained
  std::vector<c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>> buffers_;
  int constructed_ = 0;
  std::int64_t steps_ = 0;             // of all optimizers
  std::atomic<bool> training_ = false; // read by any thread that seeds
  bool stream_said_ = false;
};

} // namespace troupe::learner::transparent
