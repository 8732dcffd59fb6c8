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

/// The element-wise operation of a reduction. `first` gives every rank the value of rank 0.
enum class ReduceOp : std::uint8_t { sum, mean, min, max, product, first };

/// Thrown when a collective fails, misses its deadline or does not match on all ranks. The message
/// names the rank and the reason. The communicator is then poisoned: every later call on any rank
/// throws the same error.
class CollectiveError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A group of ranks that call the same collectives in the same order. At most one thread per rank
/// may use it at a time. Every call has a deadline and, before data move, is checked across ranks
/// for kind, order, shape, type and operation.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string backend() const = 0; // "threads", "shared_memory", "tcp", …

  virtual void all_reduce(at::Tensor& tensor, ReduceOp op) = 0;             // in place
  virtual std::vector<at::Tensor> all_gather(const at::Tensor& tensor) = 0; // [rank], equal shapes
  virtual void broadcast(at::Tensor& tensor, int root) = 0;                 // in place
  virtual at::Tensor reduce_scatter(const at::Tensor& tensor,
                                    ReduceOp op) = 0; // [size*n, …] -> [n, …]
  virtual std::vector<at::Tensor> all_to_all(const std::vector<at::Tensor>& out) = 0;
  virtual void barrier() = 0;

  /// Poisons the communicator on all ranks, e.g. because this rank stops with an error.
  virtual void abort(const std::string& reason) = 0;

  /// For LibTorch's Reducer and other code that expects a process group. Calls through it are
  /// checked in the same way.
  virtual c10::intrusive_ptr<c10d::ProcessGroup> process_group() = 0;
};

/// Decides how a group of processes keeps strangers out. The connections are encrypted with a key
/// derived from the rendezvous store and from `secret`. A group whose ranks listen beyond loopback
/// starts only if at least one of these members is set.
struct GroupTrust {
  std::string secret{};         // the deployment's; equal on all ranks, known only to them
  bool private_store = false;   // only the ranks can read the rendezvous store
  bool trusted_network = false; // the user states that no stranger reaches the network
};

struct CommunicatorOptions {
  std::chrono::milliseconds timeout{60'000};         // deadline of every call
  std::chrono::milliseconds connect_timeout{60'000}; // deadline of the rendezvous between processes
  GroupTrust trust{};
};

/// Returns a TCP port that is currently free on loopback.
int free_port();

/// Makes one communicator for each of `size` ranks that run as threads of this process.
std::vector<std::unique_ptr<Communicator>>
make_thread_communicators(int size, const CommunicatorOptions& options = {});

/// Joins a group of `size` processes over encrypted TCP as rank `rank`. Rank 0 serves the
/// rendezvous at host:port. `interface_host` is the address at which the other ranks reach this
/// process. Throws std::invalid_argument if that address is not on loopback and options.trust is
/// empty.
std::unique_ptr<Communicator>
make_tcp_communicator(const std::string& host, int port, int rank, int size,
                      const CommunicatorOptions& options = {},
                      const std::string& interface_host = "127.0.0.1");

/// Joins a group of `size` processes of one host (at most 64) over shared memory as rank `rank`.
/// Rank 0 serves the rendezvous at host:port; nothing else uses the network.
std::unique_ptr<Communicator>
make_shared_memory_communicator(const std::string& host, int port, int rank, int size,
                                const CommunicatorOptions& options = {});

/// Joins the group of all processes that mpirun started, over MPI. `interface_host` is the address
/// at which the other ranks reach this process, for the control connections. Throws
/// std::runtime_error with the reason if MPI is not available in this build or on this machine.
std::unique_ptr<Communicator>
make_mpi_communicator(const CommunicatorOptions& options = {},
                      const std::string& interface_host = "127.0.0.1");

/// Returns why MPI cannot be used here, or an empty string if it can.
std::string mpi_unavailable_reason();

/// Returns why NCCL, and with it CUDA, cannot be used here, or an empty string if it can.
std::string nccl_unavailable_reason();

/// Returns the number of GPUs that LibTorch's tensors can use. The first call loads the CUDA
/// libraries. If the result is 0, nccl_unavailable_reason() gives the reason.
int cuda_device_count();

} // namespace troupe::collectives
