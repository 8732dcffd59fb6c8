#include "learner/gradients/optimizer_state.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <typeindex>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/archive.h>

#include "learner/nn/kernels/fused_adam.hpp"
#include "learner/nn/kernels/fused_sgd.hpp"
#include "learner/nn/kernels/fused_torch_adam.hpp"

namespace troupe::learner {
namespace {

using torch::optim::Optimizer;

// These functions call `visit` with the name of each tensor (which may be undefined) or counter and
// a reference to it.

template <typename Visit>
void visit_state(torch::optim::SGDParamState& state, const Visit& visit) {
  visit("momentum_buffer", state.momentum_buffer());
}

template <typename State, typename Visit>
void visit_adam_moments(State& state, const Visit& visit) {
  visit("step", state.step());
  visit("exp_avg", state.exp_avg());
  visit("exp_avg_sq", state.exp_avg_sq());
  visit("max_exp_avg_sq", state.max_exp_avg_sq());
}

template <typename Visit>
void visit_state(torch::optim::AdamParamState& state, const Visit& visit) {
  visit_adam_moments(state, visit);
}

template <typename Visit>
void visit_state(torch::optim::AdamWParamState& state, const Visit& visit) {
  visit_adam_moments(state, visit);
}

template <typename Visit>
void visit_state(torch::optim::RMSpropParamState& state, const Visit& visit) {
  visit("step", state.step());
  visit("square_avg", state.square_avg());
  visit("momentum_buffer", state.momentum_buffer());
  visit("grad_avg", state.grad_avg());
}

template <typename Visit>
void visit_state(torch::optim::AdagradParamState& state, const Visit& visit) {
  visit("step", state.step());
  visit("sum", state.sum());
}

class Reader {
public:
  explicit Reader(TensorMap& out) : out_(&out) {}
  void operator()(const std::string& name, at::Tensor& tensor) const {
    if (tensor.defined())
      (*out_)[name] = tensor;
  }
  void operator()(const std::string& name, std::int64_t& counter) const {
    (*out_)[name] = at::full({1}, counter, at::kLong);
  }

private:
  TensorMap* out_;
};

class Writer {
public:
  Writer(const TensorMap& in, std::set<std::string>& used) : in_(&in), used_(&used) {}
  void operator()(const std::string& name, at::Tensor& tensor, const at::Tensor& parameter) const {
    const auto at = in_->find(name);
    if (at == in_->end())
      return;
    if (at->second.sizes() != parameter.sizes()
        || at->second.scalar_type() != parameter.scalar_type())
      throw std::invalid_argument("optimizer state \"" + name + "\" is "
                                  + c10::str(at->second.scalar_type(), at->second.sizes())
                                  + "; the parameter is "
                                  + c10::str(parameter.scalar_type(), parameter.sizes()));
    tensor = at::empty_like(parameter).copy_(at->second); // in the parameter's layout
    used_->insert(name);
  }
  void operator()(const std::string& name, std::int64_t& counter, const at::Tensor&) const {
    const auto at = in_->find(name);
    if (at == in_->end())
      throw std::invalid_argument("optimizer state \"" + name + "\" is missing");
    if (at->second.numel() != 1 || at->second.scalar_type() != at::kLong)
      throw std::invalid_argument("optimizer state \"" + name + "\" must be one int64");
    counter = at->second.item<std::int64_t>();
    used_->insert(name);
  }

private:
  const TensorMap* in_;
  std::set<std::string>* used_;
};

std::vector<at::Tensor> parameters_of(const Optimizer& optimizer) {
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups())
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  return parameters;
}

bool has_any(const TensorMap& state, const std::string& prefix) {
  const auto at = state.lower_bound(prefix);
  return at != state.end() && at->first.starts_with(prefix);
}

template <typename State>
void read(Optimizer& optimizer, TensorMap& out) {
  const auto parameters = parameters_of(optimizer);
  const Reader reader(out);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto at = optimizer.state().find(parameters[i].unsafeGetTensorImpl());
    if (at != optimizer.state().end())
      visit_state(static_cast<State&>(*at->second), [&](const char* name, auto& value) {
        reader(std::to_string(i) + "." + name, value);
      });
  }
}

/// Replaces the optimizer's state if it uses every entry of `in`.
template <typename State>
void write(Optimizer& optimizer, const TensorMap& in, std::set<std::string>& used) {
  std::map<void*, std::unique_ptr<State>> states; // null: the parameter has none
  const auto parameters = parameters_of(optimizer);
  const Writer writer(in, used);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto prefix = std::to_string(i) + ".";
    if (!has_any(in, prefix)) {
      // Adagrad's constructor makes its state.
      if constexpr (!std::is_same_v<State, torch::optim::AdagradParamState>)
        states[parameters[i].unsafeGetTensorImpl()] = nullptr;
      continue;
    }
    auto state = std::make_unique<State>();
    visit_state(*state, [&](const char* name, auto& value) {
      writer(prefix + name, value, parameters[i]);
    });
    states[parameters[i].unsafeGetTensorImpl()] = std::move(state);
  }
  if (used.size() < in.size())
    return;
  for (auto& [parameter, state] : states)
    if (state)
      optimizer.state()[parameter] = std::move(state);
    else
      optimizer.state().erase(parameter);
}

std::string first_line(const std::exception& error) {
  const std::string text = error.what(); // LibTorch's messages contain a long stack trace
  return text.substr(0, text.find('\n'));
}

void load_archive(Optimizer& optimizer, const TensorMap& state) {
  const auto at = state.find("archive");
  if (at == state.end() || at->second.scalar_type() != at::kByte || state.size() != 1)
    throw std::invalid_argument("the state of this kind of optimizer is one uint8 tensor, "
                                "\"archive\"");
  load_optimizer_archive(optimizer, at->second);
}

void read_fused(Optimizer& optimizer, TensorMap& out) {
  auto& fused = dynamic_cast<FusedAdam&>(optimizer);
  out = {{"0.step", at::full({1}, fused.steps(), at::kLong)},
         {"0.exp_avg", fused.mean()},
         {"0.exp_avg_sq", fused.square()}};
}

void write_fused(Optimizer& optimizer, const TensorMap& in, std::set<std::string>& used) {
  auto& fused = dynamic_cast<FusedAdam&>(optimizer);
  const Writer writer(in, used);
  const auto& parameter = fused.param_groups().front().params().front();
  std::int64_t steps = 0;
  at::Tensor mean = fused.mean(), square = fused.square();
  writer("0.step", steps, parameter);
  writer("0.exp_avg", mean, parameter);
  writer("0.exp_avg_sq", square, parameter);
  if (used.size() < in.size())
    return;
  fused.set_steps(steps);
  fused.mean() = mean;
  fused.square() = square;
}

/// How the state of one kind of optimizer is read and replaced.
struct OptimizerStateKind {
  std::type_index type;
  void (*read)(Optimizer& optimizer, TensorMap& out);
  void (*write)(Optimizer& optimizer, const TensorMap& in, std::set<std::string>& used);
};

/// Returns null for kinds whose state has no names.
const OptimizerStateKind* state_kind_of(const Optimizer& optimizer) {
  using namespace torch::optim;
  static const OptimizerStateKind kinds[] = {
      {typeid(SGD), read<SGDParamState>, write<SGDParamState>},
      {typeid(Adam), read<AdamParamState>, write<AdamParamState>},
      {typeid(AdamW), read<AdamWParamState>, write<AdamWParamState>},
      {typeid(RMSprop), read<RMSpropParamState>, write<RMSpropParamState>},
      {typeid(Adagrad), read<AdagradParamState>, write<AdagradParamState>},
      {typeid(FusedSgd), read<SGDParamState>, write<SGDParamState>},
      {typeid(FusedTorchAdam), read<AdamParamState>, write<AdamParamState>},
      {typeid(FusedAdamW), read<AdamWParamState>, write<AdamWParamState>},
      {typeid(FusedAdam), read_fused, write_fused}};
  for (const OptimizerStateKind& kind : kinds)
    if (kind.type == typeid(optimizer))
      return &kind;
  return nullptr;
}

} // namespace

at::Tensor optimizer_archive(const Optimizer& optimizer) {
  std::ostringstream out;
  try {
    torch::serialize::OutputArchive archive;
    optimizer.save(archive);
    archive.save_to(out);
  } catch (const std::exception& error) {
    throw std::runtime_error("the optimizer's state cannot be saved: " + first_line(error)
                             + "; its class needs save() and load()");
  }
  const auto text = std::move(out).str();
  auto bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

void load_optimizer_archive(Optimizer& optimizer, const at::Tensor& bytes) {
  const auto flat = bytes.cpu().contiguous();
  std::istringstream in(std::string(static_cast<const char*>(flat.const_data_ptr()),
                                    static_cast<std::size_t>(flat.numel())));
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(in);
    optimizer.load(archive);
  } catch (const std::exception& error) {
    throw std::runtime_error("the optimizer's state cannot be loaded: " + first_line(error)
                             + "; save and load with the same optimizer and parameters");
  }
}

bool knows_state_of(const Optimizer& optimizer) {
  return state_kind_of(optimizer) != nullptr;
}

TensorMap optimizer_state(Optimizer& optimizer) {
  const OptimizerStateKind* kind = state_kind_of(optimizer);
  if (!kind)
    return {{"archive", optimizer_archive(optimizer)}};
  TensorMap out;
  kind->read(optimizer, out);
  return out;
}

void load_optimizer_state(Optimizer& optimizer, const TensorMap& state) {
  const OptimizerStateKind* kind = state_kind_of(optimizer);
  if (!kind)
    return load_archive(optimizer, state);
  std::set<std::string> used;
  kind->write(optimizer, state, used);
  for (const auto& [name, tensor] : state)
    if (!used.contains(name))
      throw std::invalid_argument("optimizer state \"" + name
                                  + "\" is unexpected; it belongs to another kind of optimizer or "
                                    "to other parameters");
}

} // namespace troupe::learner
