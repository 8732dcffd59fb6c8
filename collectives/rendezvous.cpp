#include "collectives/rendezvous.hpp"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "collectives/socket.hpp"

namespace troupe::collectives {

int free_port(const std::string& host) {
  return port_of(listen_at(host, 0));
}

c10::intrusive_ptr<c10d::Store> make_rendezvous(const std::string& host, int port, int rank,
                                                int size, const CommunicatorOptions& options) {
  const auto require = [](bool held, const std::string& message) {
    if (!held)
      throw std::invalid_argument("communicator: " + message);
  };
  require(size >= 1, "size " + std::to_string(size) + " must be at least 1");
  require(rank >= 0 && rank < size,
          "rank " + std::to_string(rank) + " must be in [0, " + std::to_string(size) + ")");
  require(port >= 1 && port <= 65535, "port " + std::to_string(port) + " must be in [1, 65535]");
  require(options.timeout.count() > 0 && options.connect_timeout.count() > 0,
          "timeout and connect_timeout must be positive");
  c10d::TCPStoreOptions store;
  store.port = static_cast<std::uint16_t>(port);
  store.isServer = rank == 0;
  store.waitWorkers = false;
  store.timeout = options.connect_timeout;
  // LibTorch's server would listen on every interface: it gets a socket of ours instead.
  if (rank == 0)
    store.masterListenFd = listen_at(host, port).release();
  try {
    return c10::make_intrusive<c10d::TCPStore>(host, store);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw std::runtime_error(
        "rank " + std::to_string(rank) + " does not reach rank 0 at " + host + ":"
        + std::to_string(port) + " within " + std::to_string(options.connect_timeout.count())
        + " ms; is it running there? (" + text.substr(0, text.find('\n')) + ")");
  }
}

std::shared_ptr<ControlMesh> make_control_mesh(c10d::Store& store,
                                               const std::string& interface_host, int rank,
                                               int size, const CommunicatorOptions& options) {
  ControlMesh::Options mesh;
  mesh.host = interface_host;
  mesh.timeout = options.timeout;
  mesh.connect_timeout = options.connect_timeout;
  return std::make_shared<ControlMesh>(store, rank, size, mesh);
}

} // namespace troupe::collectives
