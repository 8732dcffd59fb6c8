#pragma once

#include <chrono>
#include <memory>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/backends/mpi_module.hpp"
#include "collectives/mesh/control_mesh.hpp"
#include "collectives/rendezvous/rendezvous.hpp"

namespace troupe::collectives {

/// The processes of mpirun, on CPU tensors. Calls are compared over the control mesh first; then
/// MPI's nonblocking collective is tested until it is complete, a rank has died, or the deadline
/// has passed. float16 and bfloat16, which MPI lacks, are reduced in float32 and rounded once. One
/// thread per rank at a time.
class MpiBackend : public FlatBackend {
public:
  /// `server`: on rank 0, of the store that formed the mesh; lives until the group's end.
  MpiBackend(std::unique_ptr<MpiGroup> group, std::shared_ptr<ControlMesh> mesh,
             std::unique_ptr<RendezvousServer> server, std::chrono::milliseconds timeout);

  const std::string getBackendName() const override { return "mpi"; }
  void poison(const std::string& message) override { mesh_->abort(message); }

private:
  void run(const FlatCall& call) override;
  void reduce(const FlatCall& call);
  void move(const FlatCall& call);
  /// Tests until the current collective is complete. `memory` is what it reads and writes.
  void finish(const Fingerprint& call, const std::vector<at::Tensor>& memory);

  std::unique_ptr<MpiGroup> group_;
  std::shared_ptr<ControlMesh> mesh_;
  std::unique_ptr<RendezvousServer> server_;
  std::chrono::milliseconds timeout_;
};

} // namespace troupe::collectives
