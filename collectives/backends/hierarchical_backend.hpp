#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/mesh/control_mesh.hpp"
#include "collectives/rendezvous/over_store.hpp"

namespace troupe::collectives {

/// Which ranks are on which host.
struct Hosts {
  std::vector<std::vector<int>> ranks; // [host][position on it] rank; every rank once
  int host = 0;                        // of this process
  int position = 0;

  bool even() const; // every host has the same number
};

/// A group made of two: the ranks of a host, and, between the hosts, each rank with its
/// counterparts (equally many ranks on every host: every rank uses the network for its slice) or
/// the first ranks of the hosts alone. Calls are compared over all ranks first, on a control mesh;
/// an error of either group poisons both and names ranks of the whole. Sums are taken inside the
/// hosts first; float16 and bfloat16 in float32, rounded once. CPU tensors. One thread per rank at
/// a time.
class HierarchicalBackend : public FlatBackend {
public:
  /// `inner`: the ranks of this host, in the order of hosts.ranks[host]. `outer`: one rank of each
  /// host, in the order of the hosts; null on a rank that does not use the network. `store` serves
  /// to form the mesh and is kept.
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

/// The factory of such groups. `host` names the host of this process, equal for processes that
/// `inner` may join; `interface_host` is the address of this process that the others reach.
StoreFactory hierarchical_over_store(StoreFactory inner, StoreFactory outer,
                                     const std::string& host,
                                     const std::string& interface_host = "127.0.0.1");

} // namespace troupe::collectives
