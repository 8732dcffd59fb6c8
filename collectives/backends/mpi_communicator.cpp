#include <array>
#include <cstring>
#include <thread>

#include "collectives/backends/backend_communicator.hpp"
#include "collectives/backends/module_file.hpp"
#include "collectives/backends/mpi_backend.hpp"
#include "collectives/mesh/group_key.hpp"

namespace troupe::collectives {
namespace {

#ifdef TROUPE_MPI_MODULE
constexpr const char* kWithoutMpi = "";
#else
constexpr const char* kWithoutMpi =
    "this build has no MPI: none was found at configure time; install Open "
    "MPI or MPICH with its headers and configure with -DTROUPE_MPI=ON";
#endif

constexpr std::size_t kAddress = 300; // bytes for "host port"

ModuleFile<MpiModule> load_mpi_module() {
  return load_module<MpiModule>("troupe_mpi", kWithoutMpi);
}

using MpiAddress = std::array<char, kAddress>;

void wait_for(MpiGroup& group, const std::shared_ptr<void>& memory,
              std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!group.done()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      group.abandon(memory);
      throw std::runtime_error("MPI: not every process joined the communicator within "
                               + std::to_string(timeout.count()) + " ms");
    }
    std::this_thread::yield();
  }
}

/// Sends rank 0's address to all ranks over MPI.
std::string tell_all(MpiGroup& group, const std::string& mine, std::chrono::milliseconds timeout) {
  const auto text = std::make_shared<MpiAddress>();
  text->fill('\0');
  std::memcpy(text->data(), mine.data(), std::min(mine.size(), kAddress - 1));
  group.broadcast(text->data(), kAddress, 0);
  wait_for(group, text, timeout);
  return text->data();
}

} // namespace

std::string mpi_unavailable_reason() {
  return load_mpi_module().reason;
}

std::unique_ptr<Communicator> make_mpi_communicator(const CommunicatorOptions& options,
                                                    const std::string& interface_host) {
  const auto loaded = load_mpi_module();
  if (!loaded.module)
    throw std::runtime_error("MPI cannot be used: " + loaded.reason);
  if (options.timeout.count() <= 0 || options.connect_timeout.count() <= 0)
    throw std::invalid_argument("make_mpi_communicator: the timeouts must be positive");
  auto group = loaded.module->make();
  if (group->size() > 1)
    require_trusted_network(options.trust, interface_host, "MPI");
  wait_for(*group, nullptr, options.connect_timeout);
  std::unique_ptr<RendezvousServer> server;
  std::string address;
  if (group->rank() == 0) {
    server = std::make_unique<RendezvousServer>(interface_host);
    address = interface_host + " " + std::to_string(server->port());
  }
  address = tell_all(*group, address, options.connect_timeout);
  const auto space = address.find(' ');
  if (space == std::string::npos)
    throw std::runtime_error("MPI: rank 0 gave no address; do all processes run the same program?");
  const auto store =
      connect_rendezvous(address.substr(0, space), std::atoi(address.c_str() + space), options);
  auto mesh =
      std::make_shared<ControlMesh>(*store, group->rank(), group->size(), options, interface_host);
  // Rank 0, which serves the addresses, waits until all ranks have read them.
  const auto here =
      std::make_shared<std::vector<char>>(1 + static_cast<std::size_t>(group->size()));
  group->all_gather(here->data(), here->data() + 1, 1);
  wait_for(*group, here, options.connect_timeout);
  return std::make_unique<BackendCommunicator>(
      c10::make_intrusive<MpiBackend>(std::move(group), std::move(mesh), std::move(server),
                                      options.timeout),
      at::kCPU);
}

} // namespace troupe::collectives
