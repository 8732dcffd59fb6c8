#pragma once

#include <chrono>
#include <memory>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/backends/mpi_module.hpp"
#include "collectives/mesh/control_mesh.hpp"
#include "collectives/rendezvous/rendezvous.hpp"

namespace troupe::collectives {

/// A backend for the processes of mpirun, on CPU tensors. Calls are first compared over the control
/// mesh. Then the backend tests MPI's nonblocking collective until it is complete, a rank has died
/// or the deadline has passed. MPI lacks float16 and bfloat16, so these are reduced in float32 and
/// rounded once. At most one thread per rank may call it at a time.
class MpiBackend : public FlatBackend {
public:
  /// `server` serves the store that formed the mesh; it is set on rank 0 only and is kept until the
  /// group ends.
  MpiBackend(std::unique_ptr<MpiGroup> group, std::shared_ptr<ControlMesh> mesh,
             std::unique_ptr<RendezvousServer> server, std::chrono::milliseconds timeout);

  const std::string getBackendName() const override { return "mpi"; }
  void poison(const std::string& message) override { mesh_->abort(message); }

private:
  void run(const FlatCall& call) override;
  void reduce(const FlatCall& call);
  void move(const FlatCall& call);
  /// Tests MPI until the current collective is complete. `memory` holds the tensors that the
  /// collective reads and writes.
  void finish(const Fingerprint& call, const std::vector<at::Tensor>& memory);

  std::unique_ptr<MpiGroup> group_;
  std::shared_ptr<ControlMesh> mesh_;
  std::unique_ptr<RendezvousServer> server_;
  std::chrono::milliseconds timeout_;
};

} // namespace troupe::collectives
