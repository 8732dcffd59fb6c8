#include "learner/gradients/sharded_state.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/optimizer.h>

#include "collectives/communicator.hpp"
#include "learner/gradients/optimizer_state.hpp"

namespace troupe::learner {
namespace {

constexpr std::size_t kSmallBytes = 64 << 10; // smaller parameters are sent together

} // namespace

std::vector<int> owners_of(const std::vector<at::Tensor>& parameters, int replicas) {
  std::vector<std::size_t> by_size(parameters.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return parameters[a].nbytes() > parameters[b].nbytes();
  });
  std::vector<std::size_t> load(static_cast<std::size_t>(replicas), 0);
  std::vector<int> owners(parameters.size());
  for (const auto i : by_size) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += parameters[i].nbytes();
    owners[i] = static_cast<int>(least - load.begin());
  }
  return owners;
}

ShardedState::ShardedState(torch::optim::Optimizer& optimizer,
                           collectives::Communicator* communicator)
    : optimizer_(&optimizer), communicator_(communicator) {
  for (auto& group : optimizer.param_groups()) {
    groups_.push_back(group.params());
    parameters_.insert(parameters_.end(), group.params().begin(), group.params().end());
  }
  owners_ = owners_of(parameters_, communicator ? communicator->size() : 1);
  cut(owners_, communicator ? communicator->rank() : 0);
}

/// Leaves only the parameters of `owner` in the optimizer.
void ShardedState::cut(const std::vector<int>& owners, int owner) {
  std::size_t i = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    auto& params = optimizer_->param_groups()[group].params();
    params.clear();
    for (const auto& parameter : groups_[group])
      if (owners[i++] == owner)
        params.push_back(parameter);
  }
}

void ShardedState::publish() {
  if (!communicator_)
    return;
  const at::NoGradGuard no_gradient;
  for (int owner = 0; owner < communicator_->size(); ++owner) {
    std::map<at::ScalarType, std::vector<at::Tensor>> small;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      auto& parameter = parameters_[i];
      if (owners_[i] != owner)
        continue;
      if (parameter.nbytes() < kSmallBytes || !parameter.is_non_overlapping_and_dense()) {
        small[parameter.scalar_type()].push_back(parameter);
        continue;
      }
      auto memory = parameter.detach().as_strided({parameter.numel()}, {1});
      communicator_->broadcast(memory, owner);
    }
    for (auto& [type, members] : small) {
      std::vector<at::Tensor> rows;
      for (const auto& member : members)
        rows.push_back(member.detach().reshape({-1}));
      auto flat = at::cat(rows);
      communicator_->broadcast(flat, owner);
      std::int64_t begin = 0;
      for (auto& member : members) {
        if (communicator_->rank() != owner)
          member.detach().copy_(flat.narrow(0, begin, member.numel()).view(member.sizes()));
        begin += member.numel();
      }
    }
  }
}

std::vector<at::Tensor> ShardedState::save() {
  const auto mine = optimizer_archive(*optimizer_);
  if (!communicator_)
    return {mine};
  const auto device = parameters_[0].device();
  const auto sizes = communicator_->all_gather(at::tensor({mine.numel()}, at::kLong).to(device));
  std::int64_t largest = 0;
  for (const auto& size : sizes)
    largest = std::max(largest, size.item<std::int64_t>());
  auto padded = at::zeros({largest}, at::kByte);
  padded.narrow(0, 0, mine.numel()).copy_(mine);
  auto parts = communicator_->all_gather(padded.to(device));
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = parts[i].narrow(0, 0, sizes[i].item<std::int64_t>()).cpu().clone();
  return parts;
}

/// Returns all parameters to the optimizer.
void ShardedState::make_whole() {
  for (std::size_t group = 0; group < groups_.size(); ++group)
    optimizer_->param_groups()[group].params() = groups_[group];
}

void ShardedState::keep_own() {
  cut(owners_, communicator_ ? communicator_->rank() : 0);
}

void ShardedState::forget_others() {
  const int rank = communicator_ ? communicator_->rank() : 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (owners_[i] != rank)
      optimizer_->state().erase(parameters_[i].unsafeGetTensorImpl());
}

/// Adds the state in a part, which its writer saved.
void ShardedState::take_part(const std::vector<int>& writers, std::size_t part,
                             const at::Tensor& bytes) {
  cut(writers, static_cast<int>(part));
  try {
    load_optimizer_archive(*optimizer_, bytes);
  } catch (...) {
    keep_own();
    throw;
  }
}

void ShardedState::load(const std::vector<at::Tensor>& parts) {
  const auto writers = owners_of(parameters_, static_cast<int>(parts.size()));
  // Only load() of the optimizer can parse a part, and it changes the optimizer.
  const auto own = optimizer_archive(*optimizer_);
  optimizer_->state().clear();
  try {
    for (std::size_t part = 0; part < parts.size(); ++part) {
      take_part(writers, part, parts[part]);
      forget_others();
    }
  } catch (...) {
    optimizer_->state().clear();
    load_optimizer_archive(*optimizer_, own);
    throw;
  }
  keep_own();
}

TensorMap ShardedState::gather() {
  if (!communicator_)
    return optimizer_state(*optimizer_);
  const auto parts = save();
  for (std::size_t part = 0; part < parts.size(); ++part)
    if (static_cast<int>(part) != communicator_->rank())
      take_part(owners_, part, parts[part]);
  make_whole();
  auto state = optimizer_state(*optimizer_);
  forget_others();
  keep_own();
  return state;
}

void ShardedState::scatter(const TensorMap& state) {
  make_whole();
  try {
    load_optimizer_state(*optimizer_, state);
  } catch (...) {
    forget_others();
    keep_own();
    throw;
  }
  forget_others();
  keep_own();
}

} // namespace troupe::learner
