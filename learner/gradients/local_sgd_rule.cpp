#include "learner/gradients/local_sgd_rule.hpp"

#include <array>
#include <stdexcept>
#include <string>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/optimizer.h>

#include "collectives/communicator.hpp"
#include "learner/gradients/group_presence.hpp"
#include "learner/gradients/optimizer_state.hpp"

namespace troupe::learner {
namespace {

/// The names in optimizer_state(), without the parameter's number.
constexpr std::array<const char*, 8> kMomentNames{
    "step",           "momentum_buffer", "exp_avg",  "exp_avg_sq",
    "max_exp_avg_sq", "square_avg",      "grad_avg", "sum"};

/// In state(): int64 [2], the steps made and those since the last averaging.
constexpr const char* kLocalSgdCounters = "local_sgd.counters";

/// Flattens tensors of one type and device and makes one call for each such group.
template <typename Call>
void on_flat(const std::vector<at::Tensor>& tensors, const Call& call) {
  std::vector<bool> done(tensors.size());
  for (std::size_t first = 0; first < tensors.size(); ++first) {
    if (done[first])
      continue;
    std::vector<at::Tensor> alike;
    std::vector<at::Tensor> pieces;
    for (std::size_t i = first; i < tensors.size(); ++i)
      if (tensors[i].options().type_equal(tensors[first].options())) {
        done[i] = true;
        alike.push_back(tensors[i]);
        pieces.push_back(tensors[i].reshape({-1}));
      }
    auto flat = at::cat(pieces);
    call(flat);
    std::int64_t begin = 0;
    for (const auto& tensor : alike) {
      tensor.copy_(flat.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
      begin += tensor.numel();
    }
  }
}

class LocalSgdRule : public UpdateRule {
public:
  LocalSgdRule(collectives::Communicator* communicator, const LocalSgdOptions& options)
      : communicator_(communicator && communicator->size() > 1 ? communicator : nullptr),
        options_(options) {
    if (options_.period < 1 || options_.synchronous_steps < 0)
      throw std::invalid_argument("local SGD: period " + std::to_string(options_.period)
                                  + " must be at least 1, synchronous_steps "
                                  + std::to_string(options_.synchronous_steps) + " at least 0");
  }

  void begin(torch::optim::Optimizer& optimizer,
             const std::vector<at::Tensor>& parameters) override {
    optimizer_ = &optimizer;
    parameters_ = parameters;
    const at::NoGradGuard guard;
    if (communicator_)
      on_flat(parameters_, [&](at::Tensor& flat) { communicator_->broadcast(flat, 0); });
  }

  void update() override {
    const at::NoGradGuard guard;
    const bool synchronous = steps_ < options_.synchronous_steps;
    if (synchronous)
      average_gradients();
    optimizer_->step();
    ++steps_;
    since_ = synchronous ? 0 : since_ + 1;
    averaged_ = since_ >= options_.period;
    if (!averaged_)
      return;
    since_ = 0;
    average(parameters_);
    if (options_.average_moments)
      average_moments();
  }

  TensorMap state() override {
    return {{kLocalSgdCounters, at::tensor(std::vector<std::int64_t>{steps_, since_}, at::kLong)}};
  }

  void load(const TensorMap& state, std::int64_t /*steps*/) override {
    const auto found = state.find(kLocalSgdCounters);
    if (found == state.end()) // saved by an earlier version
      return;
    const auto& counters = found->second;
    if (counters.scalar_type() != at::kLong || counters.dim() != 1 || counters.size(0) != 2
        || counters.min().item<std::int64_t>() < 0)
      throw std::runtime_error(std::string("load: '") + kLocalSgdCounters + "' is "
                               + c10::str(counters.scalar_type(), counters.sizes())
                               + "; it must be two numbers of steps, as state() gives them");
    steps_ = counters[0].item<std::int64_t>();
    since_ = counters[1].item<std::int64_t>();
  }

  Metrics metrics() const override {
    return {{"averaged", averaged_ ? 1 : 0}, {"steps_since_average", static_cast<double>(since_)}};
  }

private:
  void average(const std::vector<at::Tensor>& tensors) {
    if (communicator_)
      on_flat(tensors, [&](at::Tensor& flat) {
        communicator_->all_reduce(flat, collectives::ReduceOp::mean);
      });
  }

  /// Reduces small numbers. They are on the CPU before and after.
  void all_reduce(at::Tensor& numbers, collectives::ReduceOp op) {
    auto there = numbers.to(parameters_.front().device());
    communicator_->all_reduce(there, op);
    numbers = there.cpu();
  }

  /// A parameter without a gradient on all replicas remains without one.
  void average_gradients() {
    if (!communicator_)
      return;
    std::vector<bool> mine;
    for (const auto& parameter : parameters_)
      mine.push_back(parameter.grad().defined());
    const auto group = presence_in_group(*communicator_, mine, parameters_.front().device());
    std::vector<at::Tensor> gradients;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!group.anywhere[i])
        continue;
      if (!mine[i])
        parameters_[i].mutable_grad() = at::zeros_like(parameters_[i]);
      gradients.push_back(parameters_[i].grad());
    }
    average(gradients);
    if (group.factor != 1)
      for (auto& gradient : gradients)
        gradient.mul_(group.factor);
  }

  /// Moments that other replicas have for a parameter, and this one does not because the parameter
  /// had no gradient here, become zeros. All replicas then average the same moments.
  void add_missing_moments() {
    auto state = optimizer_state(*optimizer_);
    const auto count = static_cast<std::int64_t>(parameters_.size());
    const auto names = static_cast<std::int64_t>(kMomentNames.size());
    auto present = at::zeros({count, names}, at::kLong); // 0: missing; of "step": 1 + its value
    const auto name_of = [](std::int64_t i, std::int64_t name) {
      return std::to_string(i) + "." + kMomentNames[static_cast<std::size_t>(name)];
    };
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t name = 0; name < names; ++name)
        if (const auto found = state.find(name_of(i, name)); found != state.end())
          present[i][name].fill_(name == 0 ? 1 + found->second.item<std::int64_t>() : 1);
    all_reduce(present, collectives::ReduceOp::max);
    bool added = false;
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t name = 0; name < names; ++name) {
        const auto most = present[i][name].item<std::int64_t>();
        if (most == 0 || state.contains(name_of(i, name)))
          continue;
        state[name_of(i, name)] = name == 0
                                      ? at::full({1}, most - 1, at::kLong)
                                      : at::zeros_like(parameters_[static_cast<std::size_t>(i)]);
        added = true;
      }
    if (added)
      load_optimizer_state(*optimizer_, state);
  }

  void average_moments() {
    if (communicator_ && knows_state_of(*optimizer_))
      add_missing_moments();
    std::vector<at::Tensor> moments;
    for (const auto& [name, tensor] : optimizer_state(*optimizer_))
      if (tensor.is_floating_point())
        moments.push_back(tensor);
    average(moments);
  }

  collectives::Communicator* communicator_;
  LocalSgdOptions options_;
  torch::optim::Optimizer* optimizer_ = nullptr;
  std::vector<at::Tensor> parameters_;
  std::int64_t steps_ = 0;
  std::int64_t since_ = 0; // steps since the last averaging
  bool averaged_ = false;
};

} // namespace

std::unique_ptr<UpdateRule> make_local_sgd_rule(collectives::Communicator* communicator,
                                                const LocalSgdOptions& options) {
  return std::make_unique<LocalSgdRule>(communicator, options);
}

UpdateRuleFactory local_sgd_rules(collectives::Communicator* communicator,
                                  const LocalSgdOptions& options) {
  return [communicator, options](int) { return make_local_sgd_rule(communicator, options); };
}

} // namespace troupe::learner
