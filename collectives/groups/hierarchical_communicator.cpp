#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "collectives/backends/backend_communicator.hpp"
#include "collectives/backends/hierarchical_backend.hpp"
#include "collectives/rendezvous/rendezvous.hpp"

namespace troupe::collectives {
namespace {

/// Finds the hosts of all ranks. Each rank writes its host's name to the store.
Hosts meet_hosts(c10d::Store& store, const std::string& host, int rank, int size) {
  store.set("host/" + std::to_string(rank), host);
  Hosts hosts;
  std::vector<std::string> names;
  for (int other = 0; other < size; ++other) {
    std::string name;
    try {
      name = store.get_to_str("host/" + std::to_string(other));
    } catch (const std::exception&) {
      throw std::runtime_error("rank " + std::to_string(other)
                               + " did not join the rendezvous; was it started, and for "
                               + std::to_string(size) + " ranks?");
    }
    auto at = std::find(names.begin(), names.end(), name) - names.begin();
    if (at == static_cast<std::ptrdiff_t>(names.size())) {
      names.push_back(name);
      hosts.ranks.emplace_back();
    }
    auto& ranks = hosts.ranks[static_cast<std::size_t>(at)];
    if (other == rank) {
      hosts.host = static_cast<int>(at);
      hosts.position = static_cast<int>(ranks.size());
    }
    ranks.push_back(other);
  }
  return hosts;
}

c10::intrusive_ptr<c10d::Store> part_of(const c10::intrusive_ptr<c10d::Store>& store,
                                        const std::string& name) {
  return c10::make_intrusive<c10d::PrefixStore>(name, store);
}

} // namespace

StoreFactory hierarchical_over_store(StoreFactory inner, StoreFactory outer,
                                     const std::string& host, const std::string& interface_host) {
  return [inner, outer, host,
          interface_host](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                          const CommunicatorOptions& options) -> std::unique_ptr<Communicator> {
    auto hosts = meet_hosts(*store, host, rank, size);
    auto mesh = std::make_shared<ControlMesh>(*store, rank, size, options, interface_host);
    const auto& here = hosts.ranks[static_cast<std::size_t>(hosts.host)];
    auto inside = inner(part_of(store, "inner/" + std::to_string(hosts.host)), hosts.position,
                        static_cast<int>(here.size()), options);
    std::unique_ptr<Communicator> outside;
    if (hosts.even() || hosts.position == 0)
      outside = outer(part_of(store, "outer/" + std::to_string(hosts.position)), hosts.host,
                      static_cast<int>(hosts.ranks.size()), options);
    return std::make_unique<BackendCommunicator>(
        c10::make_intrusive<HierarchicalBackend>(rank, size, std::move(hosts), std::move(inside),
                                                 std::move(outside), std::move(mesh), store),
        at::kCPU);
  };
}

} // namespace troupe::collectives
