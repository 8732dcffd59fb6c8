#pragma once

#include <memory>
#include <string>

#include "collectives/rendezvous/over_store.hpp"
#include "collectives/rendezvous/process_topology.hpp"

namespace troupe::collectives {

/// The communicator of this process under the backend `name`, so that a program needs but a name:
///   "shared_memory"  processes of one host
///   "tcp"            processes anywhere, encrypted
///   "mpi"            processes of mpirun
///   "nccl"           one GPU per process: the visible one numbered local_rank, round and round
///   "hierarchical"   "shared_memory+tcp": the first inside the hosts, the second between them
///   "auto"           nccl for tensors of GPUs (`tensors`); else shared_memory on one host,
///                    hierarchical on several; a process alone needs none of them
/// Rank 0 serves the rendezvous that `place` names, unless its launcher does; one communicator per
/// place at a time. Throws std::invalid_argument with what is missing of the place and how to give
/// it, for an unknown name, and for "threads", whose ranks are not processes.
std::unique_ptr<Communicator> make_communicator(const std::string& name,
                                                const ProcessTopology& place,
                                                const CommunicatorOptions& options = {},
                                                at::DeviceType tensors = at::kCPU);

/// The store where `size` participants of the place meet, of whom this one is `id` (its rank, or
/// its thread's among all processes' threads): served by id 0, or by the launcher, whose store may
/// hold what an earlier attempt left. Each call makes a client of its own.
c10::intrusive_ptr<c10d::Store> rendezvous_of(const ProcessTopology& place, int id, int size,
                                              const CommunicatorOptions& options);

/// What make_communicator() does for a name other than "mpi", over a store that is there, e.g. for
/// ElasticGroup.
StoreFactory factory_of(const std::string& name, const ProcessTopology& place,
                        at::DeviceType tensors = at::kCPU);

} // namespace troupe::collectives
