#include "learner/replicas/replica_collectives.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "learner/replicas/differentiable.hpp"

namespace troupe::learner {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Packs tensors of one type and device into one tensor, and unpacks them. Each tensor's rows
/// [parts, …] become [parts, elements]. With parts = 0 there are no rows: [elements].
class Packing {
public:
  Packing(const Tensors& tensors, std::int64_t parts) : tensors_(tensors), parts_(parts) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto& tensor = tensors[i];
      if (parts > 0 && (tensor.dim() == 0 || tensor.size(0) % parts != 0))
        throw std::invalid_argument(
            "reduce_scatter: the first dimension of " + Nest(tensor).describe()
            + " must be divisible by the number of replicas, " + std::to_string(parts));
      kinds_[{tensor.scalar_type(), tensor.device().str()}].push_back(i);
    }
  }

  /// Calls `function` on each type's flat tensor. The results are split into tensors of the
  /// original shapes, except that the number of rows is divided by `parts`.
  Tensors call(const std::function<at::Tensor(const at::Tensor&)>& function) const {
    Tensors results(tensors_.size());
    for (const auto& [kind, members] : kinds_) {
      Tensors flat;
      for (const auto i : members)
        flat.push_back(parts_ > 0 ? tensors_[i].reshape({parts_, -1}) : tensors_[i].reshape({-1}));
      cut(function(at::cat(flat, parts_ > 0 ? 1 : 0)), members, results);
    }
    return results;
  }

private:
  void cut(const at::Tensor& flat, const std::vector<std::size_t>& members,
           Tensors& results) const {
    const auto line = flat.reshape({-1});
    std::int64_t begin = 0;
    for (const auto i : members) {
      auto sizes = tensors_[i].sizes().vec();
      auto elements = tensors_[i].numel();
      if (parts_ > 0) {
        sizes[0] /= parts_;
        elements /= parts_;
      }
      results[i] = line.narrow(0, begin, elements).view(sizes);
      begin += elements;
    }
  }

  const Tensors& tensors_;
  std::int64_t parts_;
  std::map<std::pair<at::ScalarType, std::string>, std::vector<std::size_t>> kinds_;
};

} // namespace

at::Tensor reduced_rows(const at::Tensor& all, ReduceOp op) {
  switch (op) {
  case ReduceOp::sum:
    return all.sum(0);
  case ReduceOp::mean:
    return all.mean(0);
  case ReduceOp::min:
    return all.amin(0);
  case ReduceOp::max:
    return all.amax(0);
  case ReduceOp::product:
    return all.prod(0);
  case ReduceOp::first:
    return all[0];
  }
  throw std::invalid_argument("unknown reduction");
}

collectives::Communicator* ReplicaCollectives::group(const char* call) const {
  if (!has_collectives())
    throw collectives::CollectiveError(std::string(call)
                                       + ": the replicas of this strategy do not "
                                         "wait for each other, so there are no collectives; check "
                                         "has_collectives(), or use another strategy");
  return communicator_;
}

void ReplicaCollectives::check_structure(const Nest& nest, const char* call) {
  if (!group(call))
    return;
  const auto mine = nest.fingerprint();
  const auto place = std::lower_bound(verified_.begin(), verified_.end(), mine);
  if (place != verified_.end() && *place == mine)
    return;
  auto number = at::empty({1}, at::kLong);
  *number.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(mine);
  const auto all = communicator_->all_gather(number.to(device_));
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (static_cast<std::uint64_t>(all[rank].item<std::int64_t>()) != mine) {
      const auto message = std::string(call) + " of a nest: replica "
                           + std::to_string(rank_in_sync_group()) + " has " + nest.describe()
                           + ", replica " + std::to_string(rank)
                           + " has another structure; give equal names, shapes and types on all";
      communicator_->abort(message);
      throw collectives::CollectiveError(message);
    }
  verified_.insert(place, mine);
}

Nest ReplicaCollectives::pack_and_call(
    const Nest& nest, const char* call,
    const std::function<at::Tensor(const at::Tensor&)>& function) {
  check_structure(nest, call);
  const auto tensors = nest.flatten();
  return nest.pack(Packing(tensors, 0).call(function));
}

at::Tensor ReplicaCollectives::all_reduce(const at::Tensor& tensor, ReduceOp op) {
  return group("all_reduce") ? reduced(*communicator_, tensor, op) : tensor.clone();
}

Nest ReplicaCollectives::all_reduce(const Nest& nest, ReduceOp op) {
  return pack_and_call(nest, "all_reduce",
                       [&](const at::Tensor& flat) { return all_reduce(flat, op); });
}

std::vector<at::Tensor> ReplicaCollectives::all_gather(const at::Tensor& tensor) {
  return group("all_gather") ? gathered(*communicator_, tensor).unbind(0)
                             : std::vector<at::Tensor>{tensor.clone()};
}

std::vector<Nest> ReplicaCollectives::all_gather(const Nest& nest) {
  check_structure(nest, "all_gather");
  std::vector<Tensors> parts(static_cast<std::size_t>(group_size()));
  const auto tensors = nest.flatten();
  const Packing packing(tensors, 0);
  // One collective per type. The gathered rows are then split by replica.
  std::vector<Tensors> gathered_flats;
  packing.call([&](const at::Tensor& flat) {
    gathered_flats.push_back(all_gather(flat));
    return flat;
  });
  std::vector<Nest> result;
  for (std::size_t replica = 0; replica < parts.size(); ++replica) {
    std::size_t next = 0;
    result.push_back(nest.pack(
        packing.call([&](const at::Tensor&) { return gathered_flats[next++][replica]; })));
  }
  return result;
}

at::Tensor ReplicaCollectives::all_gather_rows(const at::Tensor& tensor) {
  if (tensor.dim() == 0)
    throw std::invalid_argument("all_gather_rows: a scalar has no rows; unsqueeze(0) it");
  if (!group("all_gather_rows"))
    return tensor.clone();
  auto rows = at::empty({1}, at::kLong);
  *rows.mutable_data_ptr<std::int64_t>() = tensor.size(0);
  std::vector<std::int64_t> counts;
  for (const auto& count : communicator_->all_gather(rows.to(device_)))
    counts.push_back(count.item<std::int64_t>());
  auto sizes = tensor.sizes().vec();
  sizes[0] = *std::max_element(counts.begin(), counts.end()) - tensor.size(0);
  const auto padded = gathered(
      *communicator_, at::cat({tensor, at::zeros(sizes, tensor.options().requires_grad(false))}));
  Tensors parts;
  for (std::size_t replica = 0; replica < counts.size(); ++replica)
    parts.push_back(padded[static_cast<std::int64_t>(replica)].narrow(0, 0, counts[replica]));
  return at::cat(parts);
}

at::Tensor ReplicaCollectives::reduce_scatter(const at::Tensor& tensor, ReduceOp op) {
  return group("reduce_scatter") ? scattered(*communicator_, tensor, op) : tensor.clone();
}

Nest ReplicaCollectives::reduce_scatter(const Nest& nest, ReduceOp op) {
  check_structure(nest, "reduce_scatter");
  const auto tensors = nest.flatten();
  return nest.pack(Packing(tensors, group_size()).call([&](const at::Tensor& flat) {
    return reduce_scatter(flat, op);
  }));
}

at::Tensor ReplicaCollectives::broadcast(const at::Tensor& tensor, int root) {
  if (group("broadcast"))
    return broadcasted(*communicator_, tensor, root);
  if (root != 0)
    throw std::invalid_argument("broadcast: root " + std::to_string(root)
                                + " is not a replica; there is one, replica 0");
  return tensor.clone();
}

Nest ReplicaCollectives::broadcast(const Nest& nest, int root) {
  return pack_and_call(nest, "broadcast",
                       [&](const at::Tensor& flat) { return broadcast(flat, root); });
}

std::vector<at::Tensor> ReplicaCollectives::all_to_all(const std::vector<at::Tensor>& out) {
  if (out.size() != static_cast<std::size_t>(group_size()))
    throw std::invalid_argument("all_to_all of " + std::to_string(out.size())
                                + " tensors; give one per replica, "
                                + std::to_string(group_size()));
  if (!group("all_to_all"))
    return {out[0].clone()};
  return exchanged(*communicator_, at::stack(out)).unbind(0);
}

std::vector<Nest> ReplicaCollectives::all_to_all(const std::vector<Nest>& out) {
  if (out.empty())
    return {};
  std::vector<Tensors> flats; // [to][type]
  for (const auto& nest : out) {
    if (nest.fingerprint() != out[0].fingerprint())
      throw std::invalid_argument("all_to_all: " + nest.describe() + " does not have the structure "
                                  + out[0].describe() + "; make them equal");
    auto& flat = flats.emplace_back();
    const auto tensors = nest.flatten();
    Packing(tensors, 0).call([&](const at::Tensor& one) {
      flat.push_back(one);
      return one;
    });
  }
  check_structure(out[0], "all_to_all");
  std::vector<Tensors> received(flats[0].size()); // [type][from]
  for (std::size_t type = 0; type < received.size(); ++type) {
    Tensors to;
    for (const auto& flat : flats)
      to.push_back(flat[type]);
    received[type] = all_to_all(to);
  }
  const auto tensors = out[0].flatten();
  const Packing packing(tensors, 0);
  std::vector<Nest> result;
  for (std::size_t from = 0; from < out.size(); ++from) {
    std::size_t type = 0;
    result.push_back(
        out[0].pack(packing.call([&](const at::Tensor&) { return received[type++][from]; })));
  }
  return result;
}

void ReplicaCollectives::barrier() {
  if (group("barrier"))
    communicator_->barrier();
}

std::vector<Nest> ReplicaCollectives::map_gather(const std::vector<Nest>& items,
                                                 const std::function<Nest(const Nest&)>& function) {
  const at::NoGradGuard guard;
  const auto size = static_cast<std::size_t>(group_size());
  const auto rank = static_cast<std::size_t>(rank_in_sync_group());
  std::vector<Nest> results(items.size());
  // Works in rounds. In the last round, replicas without an item repeat the last item.
  for (std::size_t round = 0; round < items.size(); round += size) {
    const auto all = all_gather(function(items[std::min(round + rank, items.size() - 1)]));
    for (std::size_t i = 0; i < size && round + i < items.size(); ++i)
      results[round + i] = all[i];
  }
  return results;
}

Nest ReplicaCollectives::map_reduce(const std::vector<Nest>& items,
                                    const std::function<Nest(const Nest&)>& function, ReduceOp op) {
  if (items.empty())
    throw std::invalid_argument("map_reduce: there are no items; give at least one");
  const auto results = map_gather(items, function);
  std::vector<Tensors> flat;
  for (const auto& result : results)
    flat.push_back(result.flatten());
  auto reduced = flat[0];
  for (std::size_t leaf = 0; leaf < reduced.size(); ++leaf) {
    Tensors all;
    for (const auto& one : flat)
      all.push_back(one[leaf]);
    reduced[leaf] = reduced_rows(at::stack(all), op);
  }
  return results[0].pack(reduced);
}

void ReplicaCollectives::all_reduce_(at::Tensor& tensor, ReduceOp op) {
  if (group("all_reduce"))
    communicator_->all_reduce(tensor, op);
}

void ReplicaCollectives::broadcast_(at::Tensor& tensor, int root) {
  if (group("broadcast"))
    communicator_->broadcast(tensor, root);
}

} // namespace troupe::learner
