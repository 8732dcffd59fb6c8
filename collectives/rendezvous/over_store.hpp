#pragma once

#include <functional>
#include <memory>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/communicator.hpp"

namespace troupe::collectives {

/// Makes the communicator of rank `rank` of `size` ranks that meet in `store`. The store must
/// contain no entries of earlier groups, e.g. a fresh c10d::PrefixStore. Throws naming a rank that
/// did not arrive. Every rank needs a separate client of the store, because a waiting call blocks
/// the client's other calls.
using StoreFactory = std::function<std::unique_ptr<Communicator>(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    const CommunicatorOptions& options)>;

/// For ranks that are threads of one process. All of them must use copies of the same factory.
StoreFactory threads_over_store();

/// `interface_host` is the address at which the other ranks reach this process.
StoreFactory tcp_over_store(const std::string& interface_host = "127.0.0.1");

/// For processes of one host.
StoreFactory shared_memory_over_store();

/// Data are not encrypted. `device` is the index of the GPU. Throws std::runtime_error with the
/// reason if NCCL is not available in this build or on this machine.
StoreFactory nccl_over_store(int device, const std::string& interface_host = "127.0.0.1");

} // namespace troupe::collectives
