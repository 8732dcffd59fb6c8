#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace c10d {
class ProcessGroup;
}

namespace troupe::collectives {

/// `first` is the value of rank 0, on all.
enum class ReduceOp : std::uint8_t { sum, mean, min, max, product, first };

/// A collective that failed, came late or did not match on all ranks. The message says which rank
/// and why; the communicator is poisoned: every later call on any rank throws the same.
class CollectiveError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A group of ranks that call the same collectives in the same order. One thread per rank uses it
/// at a time. Every call has a deadline and is checked across ranks for kind, order, shape, type
/// and operation before data moves.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string backend() const = 0; // "threads", "shared_memory", "tcp", …

  virtual void all_reduce(at::Tensor& tensor, ReduceOp op) = 0;             // in place
  virtual std::vector<at::Tensor> all_gather(const at::Tensor& tensor) = 0; // [rank] equal shapes
  virtual void broadcast(at::Tensor& tensor, int root) = 0;                 // in place
  virtual at::Tensor reduce_scatter(const at::Tensor& tensor,
                                    ReduceOp op) = 0; // [size*n, …] -> [n, …]
  virtual std::vector<at::Tensor> all_to_all(const std::vector<at::Tensor>& out) = 0;
  virtual void barrier() = 0;

  /// Poisons the communicator on all ranks, e.g. because this rank stops with an error.
  virtual void abort(const std::string& reason) = 0;

  /// For LibTorch's own Reducer and whatever else wants a process group; calls through it are
  /// checked likewise.
  virtual c10::intrusive_ptr<c10d::ProcessGroup> process_group() = 0;
};

/// What keeps strangers out of a group of processes. Their connections are encrypted by a key that
/// comes from the store where they meet and from `secret`. A group whose ranks listen beyond
/// loopback starts only if one of these is given.
struct GroupTrust {
  std::string secret{};         // of the deployment; equal on all ranks, known to no others
  bool private_store = false;   // only the ranks can read the store where they meet
  bool trusted_network = false; // the user states that no stranger reaches the network
};

struct CommunicatorOptions {
  std::chrono::milliseconds timeout{60'000};         // deadline of every call
  std::chrono::milliseconds connect_timeout{60'000}; // of the rendezvous, for processes
  GroupTrust trust{};
};

/// A TCP port that is free at `host` now.
int free_port(const std::string& host = "127.0.0.1");

/// `size` ranks as threads of this process, one communicator each.
std::vector<std::unique_ptr<Communicator>>
make_thread_communicators(int size, const CommunicatorOptions& options = {});

/// Rank `rank` of `size` processes over TCP, encrypted. Rank 0 serves the rendezvous at host:port.
/// `interface_host` is the address of this process that the others reach. Throws
/// std::invalid_argument where that is not on loopback and options.trust is empty.
std::unique_ptr<Communicator>
make_tcp_communicator(const std::string& host, int port, int rank, int size,
                      const CommunicatorOptions& options = {},
                      const std::string& interface_host = "127.0.0.1");

/// Rank `rank` of `size` processes of one host (at most 64), over memory that they share. Rank 0
/// serves the rendezvous at host:port; nothing else goes over the network.
std::unique_ptr<Communicator>
make_shared_memory_communicator(const std::string& host, int port, int rank, int size,
                                const CommunicatorOptions& options = {});

/// All processes that mpirun started, over MPI. Their control connections go over `interface_host`,
/// this process's address that the others reach. Throws std::runtime_error with the reason where
/// this build or machine has no MPI.
std::unique_ptr<Communicator>
make_mpi_communicator(const CommunicatorOptions& options = {},
                      const std::string& interface_host = "127.0.0.1");

/// Why MPI cannot be used here, or an empty string when it can.
std::string mpi_unavailable_reason();

/// The same as make_tcp_communicator over NCCL, whose data are not encrypted. Throws
/// std::runtime_error with the reason where this build or machine has no NCCL.
std::unique_ptr<Communicator>
make_nccl_communicator(const std::string& host, int port, int rank, int size, int device,
                       const CommunicatorOptions& options = {},
                       const std::string& interface_host = "127.0.0.1");

/// Why NCCL, and with it CUDA, cannot be used here, or an empty string when it can.
std::string nccl_unavailable_reason();

/// The visible GPUs, for LibTorch's tensors: the first call loads what it needs for them. 0:
/// nccl_unavailable_reason() says why.
int cuda_device_count();

} // namespace troupe::collectives
