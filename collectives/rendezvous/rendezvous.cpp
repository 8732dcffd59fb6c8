#include "collectives/rendezvous/rendezvous.hpp"

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "collectives/mesh/group_key.hpp"
#include "collectives/mesh/no_pipe_signal.hpp"

namespace troupe::collectives {
namespace {

constexpr std::chrono::milliseconds kRetry{20};

/// Passes LibTorch's server a bound socket, because it would otherwise listen on every interface.
c10::intrusive_ptr<c10d::Store> serve(const std::string& host, Socket listener,
                                      std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions store;
  store.port = static_cast<std::uint16_t>(port_of(listener));
  store.isServer = true;
  store.waitWorkers = false;
  store.timeout = timeout;
  store.masterListenFd = listener.release();
  const NoPipeSignal guard;
  return c10::make_intrusive<c10d::TCPStore>(host, store);
}

/// Waits until a server listens at host:port. Otherwise LibTorch's client would print a long stack
/// trace.
void wait_for_server(const std::string& host, int port, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    try {
      connect_to(host, port, deadline);
      return;
    } catch (const std::runtime_error& error) {
      if (std::chrono::steady_clock::now() + kRetry >= deadline)
        throw std::runtime_error(
            std::string(error.what()) + " for " + std::to_string(timeout.count())
            + " ms; is rank 0, or the server of the rendezvous, running there?");
    }
    std::this_thread::sleep_for(kRetry);
  }
}

void require(bool held, const std::string& message) {
  if (!held)
    throw std::invalid_argument("communicator: " + message);
}

} // namespace

int free_port() {
  return port_of(listen_at("127.0.0.1", 0));
}

c10::intrusive_ptr<c10d::Store> connect_rendezvous(const std::string& host, int port,
                                                   const CommunicatorOptions& options) {
  require(port >= 1 && port <= 65535, "port " + std::to_string(port) + " must be in [1, 65535]");
  require(options.connect_timeout.count() > 0, "connect_timeout must be positive");
  wait_for_server(host, port, options.connect_timeout);
  c10d::TCPStoreOptions store;
  store.port = static_cast<std::uint16_t>(port);
  store.waitWorkers = false;
  store.timeout = options.connect_timeout;
  return c10::make_intrusive<c10d::TCPStore>(host, store);
}

RendezvousServer::RendezvousServer(const std::string& host) : host_(host) {
  auto listener = listen_at(host, 0);
  port_ = port_of(listener);
  store_ = serve(host, std::move(listener), CommunicatorOptions().connect_timeout);
}

RendezvousFile::RendezvousFile() : file_(::memfd_create("troupe_rendezvous", MFD_CLOEXEC)) {
  if (!file_)
    throw std::system_error(errno, std::generic_category(), "memfd_create");
}

std::string RendezvousFile::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.fd());
}

c10::intrusive_ptr<c10d::Store> open_rendezvous(const std::string& file,
                                                const CommunicatorOptions& options) {
  if (::eaccess(file.c_str(), R_OK | W_OK) != 0)
    throw std::runtime_error(
        "the rendezvous " + file + " (TROUPE_RENDEZVOUS): " + std::strerror(errno)
        + "; it exists only while the launcher of the ranks runs, for its user");
  constexpr int kKeepFile = -1; // the file's owner removes it
  auto store = c10::make_intrusive<c10d::FileStore>(file, kKeepFile);
  store->setTimeout(options.connect_timeout);
  return store;
}

c10::intrusive_ptr<c10d::Store> make_rendezvous(const std::string& host, int port, int rank,
                                                int size, const CommunicatorOptions& options) {
  require(size >= 1, "size " + std::to_string(size) + " must be at least 1");
  require(rank >= 0 && rank < size,
          "rank " + std::to_string(rank) + " must be in [0, " + std::to_string(size) + ")");
  require(port >= 1 && port <= 65535, "port " + std::to_string(port) + " must be in [1, 65535]");
  require(options.timeout.count() > 0 && options.connect_timeout.count() > 0,
          "timeout and connect_timeout must be positive");
  require_trust(options.trust, host,
                "the address of the rendezvous (MASTER_ADDR, which may be 127.0.0.1 if all ranks "
                "are on this host)");
  if (rank == 0)
    return serve(host, listen_at(host, port), options.connect_timeout);
  try {
    return connect_rendezvous(host, port, options);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("rank " + std::to_string(rank) + " " + error.what());
  }
}

} // namespace troupe::collectives
