#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "collectives/backends/backend_communicator.hpp"
#include "collectives/backends/tcp_backend.hpp"
#include "collectives/mesh/connect_ranks.hpp"
#include "collectives/mesh/group_key.hpp"
#include "collectives/rendezvous/over_store.hpp"
#include "collectives/rendezvous/rendezvous.hpp"

namespace troupe::collectives {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{128} << 10; // bytes, on a data connection

} // namespace

StoreFactory tcp_over_store(const std::string& interface_host) {
  return [interface_host](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                          const CommunicatorOptions& options) -> std::unique_ptr<Communicator> {
    const auto deadline = std::chrono::steady_clock::now() + options.connect_timeout;
    auto mesh = std::make_shared<ControlMesh>(*store, rank, size, options, interface_host);
    std::vector<SecureSocket> data;
    if (size > 1) {
      c10d::PrefixStore others("data", store);
      data = connect_ranks(others, rank, size,
                           {.host = interface_host,
                            .trust = options.trust,
                            .deadline = deadline,
                            .read_bytes = kReadAtOnce,
                            .clear_if_trusted = true});
    }
    return std::make_unique<BackendCommunicator>(
        c10::make_intrusive<TcpBackend>(rank, size, std::move(data), std::move(mesh), store,
                                        options.timeout),
        at::kCPU);
  };
}

std::unique_ptr<Communicator> make_tcp_communicator(const std::string& host, int port, int rank,
                                                    int size, const CommunicatorOptions& options,
                                                    const std::string& interface_host) {
  if (size > 1)
    require_trust(options.trust, interface_host); // fail before other ranks wait for this one
  return tcp_over_store(interface_host)(make_rendezvous(host, port, rank, size, options), rank,
                                        size, options);
}

} // namespace troupe::collectives
