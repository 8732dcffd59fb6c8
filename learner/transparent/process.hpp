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

/// One of the processes of a LibTorch training program that runs as several. All ranks run the same
/// program, so they reach its optimizers, steps and epochs in the same order. At most one thread
/// may use this object at a time. Throws CollectiveError if ranks differ, are late or are lost;
/// every rank must then end.
class TransparentProcess {
public:
  using Closure = std::function<at::Tensor()>;
  using Sampler = std::function<std::optional<std::vector<std::size_t>>(std::size_t batch_size)>;

  /// `another` makes a further communicator of the same ranks; all ranks call it together, at most
  /// kChannels times. The constructor sets the default random generator of every rank to rank 0's
  /// state, so random numbers before the first step (data, initial parameters) are equal.
  TransparentProcess(std::unique_ptr<collectives::Communicator> communicator,
                     GradientAverage::MakeChannel another, Settings settings);
  ~TransparentProcess();

  int rank() const;
  int size() const;

  /// Runs LibTorch's `step` on averaged gradients. With a closure, its gradients and loss are
  /// averaged after each evaluation; without one, gradients are averaged before the step. The first
  /// step sets the parameters to rank 0's.
  at::Tensor step(torch::optim::Optimizer& optimizer, const Closure& closure,
                  const std::string& kind, const std::function<at::Tensor(Closure)>& original);

  /// Reports that parameters were added to an optimizer. They and the modules' buffers are set to
  /// rank 0's, before the first forward pass.
  void group_added(torch::optim::Optimizer& optimizer);

  /// Registers a module's buffer. It is set to rank 0's at each step if the settings ask for it.
  void buffer(const at::Tensor& tensor);

  /// Returns this rank's part of a sampler's next batch, or all of it while gradients are off
  /// (evaluation).
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size, const Sampler& original);

  /// Reshuffles in the same way on all ranks, with rank 0's generator.
  void reset(const std::function<void()>& original);

  /// Reports once that streams are not shared.
  void stream();

  /// Returns the seed that this rank uses if the program passes `seed`. Once training has begun,
  /// ranks other than 0 use different seeds.
  std::uint64_t shifted(const void* generator, std::uint64_t seed) const;

  /// Called when the program ends normally. Waits until the other ranks also do so.
  void end();
  /// Called when the program fails. Informs the other ranks.
  void abort(const std::string& reason);

private:
  struct Tracked {
    int number = 0; // from 1, in the order of construction
    std::string kind;
    std::int64_t steps = 0;
    std::size_t parameters = 0;           // number of parameters broadcast so far
    GradientAverage* gradients = nullptr; // in gradients_; set from the first step on
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
  /// At most as many as were ever alive at once.
  std::map<const torch::optim::Optimizer*, Tracked> optimizers_;
  /// By first step. Those of destroyed optimizers are kept if they have a channel, to be drained.
  std::vector<std::unique_ptr<GradientAverage>> gradients_;
  int averages_ = 0; // number of objects ever added to gradients_
  std::vector<c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>> buffers_;
  int constructed_ = 0;
  std::int64_t steps_ = 0;             // total over all optimizers
  std::atomic<bool> training_ = false; // read by any thread that sets a seed
  bool stream_said_ = false;
};

} // namespace troupe::learner::transparent
