#pragma once

#include <functional>
#include <memory>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/communicator.hpp"

namespace troupe::collectives {

/// Makes the communicator of rank `rank` of `size` that meet in `store`, which must be empty of
/// earlier groups (a c10d::PrefixStore of its own). Throws naming a rank that did not arrive. Every
/// rank needs a separate client of the store: a waiting call blocks the others of its client.
using StoreFactory = std::function<std::unique_ptr<Communicator>(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    const CommunicatorOptions& options)>;

/// Ranks as threads: all of them use copies of one such factory.
StoreFactory threads_over_store();

/// `interface_host` is the address of this process that the others reach.
StoreFactory tcp_over_store(const std::string& interface_host = "127.0.0.1");

/// Processes of one host.
StoreFactory shared_memory_over_store();

/// Throws std::runtime_error with the reason where this build or machine has no NCCL.
StoreFactory nccl_over_store(int device, const std::string& interface_host = "127.0.0.1");

} // namespace troupe::collectives
