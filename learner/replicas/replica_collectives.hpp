#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/communicator.hpp"
#include "collectives/nest/nest.hpp"

namespace troupe::learner {

using collectives::Nest;
using collectives::ReduceOp;

/// Reduces tensors that are the rows of `all`, [replica, …], without a collective.
at::Tensor reduced_rows(const at::Tensor& all, ReduceOp op);

/// A replica's collectives within its sync group, on tensors and on nests of tensors. All replicas
/// of the group must make the same calls in the same order; otherwise all of them throw
/// CollectiveError naming each rank's call. Valid only on the replica's thread.
///
/// The functions that return tensors are differentiable, even with a single replica. The gradient
/// is that of the sum of all replicas' losses (which wrap_optimizer() then averages). Backward
/// passes are collectives too, so all replicas must run them.
class ReplicaCollectives {
public:
  /// `communicator` belongs to the sync group and must outlive this object. Null means that this
  /// replica is alone.
  explicit ReplicaCollectives(collectives::Communicator* communicator, at::Device device,
                              bool has_collectives = true)
      : communicator_(communicator), device_(device), has_collectives_(has_collectives) {}

  /// Returns whether the replicas in sync wait for each other. If they do not (backup workers), all
  /// calls below throw CollectiveError.
  bool has_collectives() const { return has_collectives_; }
  int rank_in_sync_group() const { return communicator_ ? communicator_->rank() : 0; }

  /// Reduces over the replicas. Sum, mean and first have gradients. Min and max divide the gradient
  /// equally among the elements that attain them. A product has no gradient.
  at::Tensor all_reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::mean);
  Nest all_reduce(const Nest& nest, ReduceOp op = ReduceOp::mean); // one all_reduce per type
  /// Returns [replica], with equal shapes.
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor);
  std::vector<Nest> all_gather(const Nest& nest);
  /// Concatenates the rows of all replicas in rank order: [rows of each, …] -> [sum, …]. The number
  /// of rows may differ between replicas and may be zero.
  at::Tensor all_gather_rows(const at::Tensor& tensor);
  /// Returns part `rank` of the reduced tensor: [size·n, …] -> [n, …]. Sum and mean have gradients.
  at::Tensor reduce_scatter(const at::Tensor& tensor, ReduceOp op = ReduceOp::mean);
  Nest reduce_scatter(const Nest& nest, ReduceOp op = ReduceOp::mean);
  at::Tensor broadcast(const at::Tensor& tensor, int root = 0); // equal shapes on all replicas
  Nest broadcast(const Nest& nest, int root = 0);
  /// Sends out[i] to replica i. Element i of the result comes from replica i. Shapes are equal.
  std::vector<at::Tensor> all_to_all(const std::vector<at::Tensor>& out);
  std::vector<Nest> all_to_all(const std::vector<Nest>& out);
  void barrier();

  /// Applies `function` to `items`, which must be the same on every replica. Replica r processes
  /// items r, r + size, … The results must have the same structure. They are gathered on all
  /// replicas in the order of the items, or reduced. No gradient.
  std::vector<Nest> map_gather(const std::vector<Nest>& items,
                               const std::function<Nest(const Nest&)>& function);
  Nest map_reduce(const std::vector<Nest>& items, const std::function<Nest(const Nest&)>& function,
                  ReduceOp op = ReduceOp::sum);

  /// In place, without a gradient.
  void all_reduce_(at::Tensor& tensor, ReduceOp op = ReduceOp::mean);
  void broadcast_(at::Tensor& tensor, int root = 0);

  collectives::Communicator* communicator() const { return communicator_; }

protected:
  int group_size() const { return communicator_ ? communicator_->size() : 1; }

private:
  collectives::Communicator* group(const char* call) const; // null: this replica is alone
  void check_structure(const Nest& nest, const char* call);
  Nest pack_and_call(const Nest& nest, const char* call,
                     const std::function<at::Tensor(const at::Tensor&)>& function);

  collectives::Communicator* communicator_;
  at::Device device_;
  bool has_collectives_;
  std::vector<std::uint64_t> verified_; // sorted fingerprints of structures agreed on by all
};

} // namespace troupe::learner
