#pragma once

#include <memory>
#include <string>

#include "collectives/rendezvous/over_store.hpp"
#include "collectives/rendezvous/process_topology.hpp"

namespace troupe::collectives {

/// Makes this process's communicator with the backend `name`:
///   "shared_memory"  processes of one host
///   "tcp"            processes on any hosts, encrypted
///   "mpi"            processes started by mpirun
///   "nccl"           one GPU per process: visible GPU local_rank, modulo the number of GPUs
///   "hierarchical"   "shared_memory+tcp": the first inside the hosts, the second between them
///   "auto"           nccl for GPU tensors (`tensors`); otherwise shared_memory on one host and
///                    hierarchical on several; a single process needs none of them
/// Rank 0 serves the rendezvous that `place` names, unless the launcher serves it. At most one
/// communicator per place may exist at a time. Throws std::invalid_argument if `place` lacks
/// something (the message says what is missing and how to provide it), if the name is unknown, and
/// for "threads", whose ranks are not processes.
std::unique_ptr<Communicator> make_communicator(const std::string& name,
                                                const ProcessTopology& place,
                                                const CommunicatorOptions& options = {},
                                                at::DeviceType tensors = at::kCPU);

/// Returns a new client of the store in which `size` participants of the place meet. `id` is this
/// participant's number: its rank, or the index of its thread among the threads of all processes.
/// Participant 0 serves the store unless the launcher does. A launcher's store may contain entries
/// of an earlier attempt.
c10::intrusive_ptr<c10d::Store> rendezvous_of(const ProcessTopology& place, int id, int size,
                                              const CommunicatorOptions& options);

/// Returns the factory that make_communicator() uses for `name`, over an existing store, e.g. for
/// ElasticGroup. `name` must not be "mpi".
StoreFactory factory_of(const std::string& name, const ProcessTopology& place,
                        at::DeviceType tensors = at::kCPU);

} // namespace troupe::collectives
