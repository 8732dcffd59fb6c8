#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/mesh/control_mesh.hpp"
#include "collectives/rendezvous/over_store.hpp"

namespace troupe::collectives {

/// Maps ranks to hosts.
struct Hosts {
  std::vector<std::vector<int>> ranks; // [host][position on the host]; contains every rank once
  int host = 0;                        // of this process
  int position = 0;

  bool even() const; // all hosts have the same number of ranks
};

/// Combines two levels of groups: the ranks of each host, and one or more groups between hosts.
/// With equally many ranks on every host, each rank is connected to its counterparts on the other
/// hosts and uses the network for its own slice; otherwise only the first rank of each host uses
/// the network. Calls are first compared across all ranks over a control mesh. An error in either
/// group poisons both and names global ranks. Sums are taken inside the hosts first; float16 and
/// bfloat16 are summed in float32 and rounded once. CPU tensors only. At most one thread per rank
/// may call it at a time.
class HierarchicalBackend : public FlatBackend {
public:
  /// `inner` connects the ranks of this host, in the order of hosts.ranks[host]. `outer` connects
  /// one rank of each host, in the order of the hosts, and is null on a rank that does not use the
  /// network. `store` was used to form the mesh and is kept alive.
  HierarchicalBackend(int rank, int size, Hosts hosts, std::unique_ptr<Communicator> inner,
                      std::unique_ptr<Communicator> outer, std::shared_ptr<ControlMesh> mesh,
                      c10::intrusive_ptr<c10d::Store> store);

  const std::string getBackendName() const override { return "hierarchical"; }
  void poison(const std::string& message) override;

private:
  void run(const FlatCall& call) override;
  void move(const FlatCall& call);
  at::Tensor reduced(const at::Tensor& input, ReduceOp op);
  at::Tensor scattered(const at::Tensor& input, ReduceOp op);
  at::Tensor gathered(const at::Tensor& input);
  void broadcast_from(at::Tensor data, int root);
  at::Tensor exchanged(const at::Tensor& input);
  void exchange_unevenly(const FlatCall& call);

  Hosts hosts_;
  std::unique_ptr<Communicator> inner_;
  std::unique_ptr<Communicator> outer_;
  std::shared_ptr<ControlMesh> mesh_;
  c10::intrusive_ptr<c10d::Store> store_;
};

/// Returns the factory of such groups. `host` names the host of this process; it must be equal for
/// all processes that share an `inner` group. `interface_host` is the address at which the other
/// ranks reach this process.
StoreFactory hierarchical_over_store(StoreFactory inner, StoreFactory outer,
                                     const std::string& host,
                                     const std::string& interface_host = "127.0.0.1");

} // namespace troupe::collectives
