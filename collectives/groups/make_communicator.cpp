#include "collectives/groups/make_communicator.hpp"

#include <algorithm>

#include <unistd.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "collectives/backends/hierarchical_backend.hpp"
#include "collectives/mesh/group_key.hpp"
#include "collectives/rendezvous/group_trust.hpp"
#include "collectives/rendezvous/rendezvous.hpp"

namespace troupe::collectives {
namespace {

void require_option(bool held, const std::string& message) {
  if (!held)
    throw std::invalid_argument("make_communicator: " + message);
}

std::string describe(const ProcessTopology& place) {
  return "the place (from " + place.source + ") of rank " + std::to_string(place.rank) + " of "
         + std::to_string(place.size);
}

/// Returns whether all processes are on this host, according to the launcher.
bool one_host(const ProcessTopology& place) {
  return place.local_size == place.size;
}

std::string choose(const ProcessTopology& place, at::DeviceType tensors) {
  if (place.size == 1)
    return "threads";
  if (tensors == at::kCUDA)
    return "nccl";
  return one_host(place) ? "shared_memory" : "hierarchical";
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string address_of(const ProcessTopology& place) {
  require_option(
      !place.address.empty(),
      describe(place)
          + " has no address of this process that other hosts can reach; set TROUPE_ADDRESS to it");
  return place.address;
}

/// On a single host, the unencrypted traffic of NCCL and MPI is trusted.
CommunicatorOptions trusting_host(CommunicatorOptions options, const ProcessTopology& place) {
  options.trust.trusted_network = options.trust.trusted_network || one_host(place);
  return options;
}

std::unique_ptr<Communicator> over_mpi(const ProcessTopology& place,
                                       const CommunicatorOptions& options) {
  auto result = make_mpi_communicator(trusting_host(options, place),
                                      one_host(place) ? "127.0.0.1" : address_of(place));
  require_option(
      result->rank() == place.rank && result->size() == place.size,
      describe(place) + " is rank " + std::to_string(result->rank()) + " of "
          + std::to_string(result->size())
          + " for MPI; start the program with mpirun, and let MPI describe the processes");
  return result;
}

} // namespace

StoreFactory factory_of(const std::string& name, const ProcessTopology& place,
                        at::DeviceType tensors) {
  const auto chosen = name == "auto" ? choose(place, tensors) : name;
  if (chosen == "threads") {
    require_option(
        place.size == 1,
        "\"threads\" are ranks inside one process, but " + describe(place)
            + " has several processes; choose shared_memory or tcp, or start one process and "
              "use make_thread_communicators()");
    return threads_over_store();
  }
  if (chosen == "tcp")
    return tcp_over_store(address_of(place));
  if (chosen == "nccl")
    return [make = nccl_over_store(place.local_rank % std::max(1, cuda_device_count()),
                                   address_of(place)),
            place](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                   const CommunicatorOptions& options) {
      return make(store, rank, size, trusting_host(options, place));
    };
  if (chosen == "shared_memory") {
    require_option(one_host(place), "\"shared_memory\" is for one host, but " + describe(place)
                                        + " has " + std::to_string(place.local_size)
                                        + " ranks on this one; choose hierarchical or tcp");
    return shared_memory_over_store();
  }
  if (chosen == "hierarchical" || chosen == "shared_memory+tcp")
    return hierarchical_over_store(shared_memory_over_store(), tcp_over_store(address_of(place)),
                                   host_name(), address_of(place));
  throw std::invalid_argument("make_communicator: there is no backend \"" + name
                              + "\"; choose auto, shared_memory, tcp, mpi, nccl or hierarchical");
}

std::unique_ptr<Communicator> make_communicator(const std::string& name,
                                                const ProcessTopology& place,
                                                const CommunicatorOptions& given,
                                                at::DeviceType tensors) {
  const auto options = with_trust(given, place);
  require_option(place.role == "worker" || place.role == "chief",
                 describe(place) + " is that of a " + place.role
                     + ", which takes no part in collectives; only workers and the chief do");
  if (name == "mpi")
    return over_mpi(place, options);
  const auto make = factory_of(name, place, tensors);
  const auto chosen = name == "auto" ? choose(place, tensors) : name;
  if (place.size > 1 && chosen != "shared_memory" && chosen != "nccl")
    require_trust(options.trust, address_of(place)); // fail before any rank waits
  if (place.size == 1)
    return make(c10::make_intrusive<c10d::HashStore>(), 0, 1, options); // opens no port
  return make(c10::make_intrusive<c10d::PrefixStore>(
                  "troupe", rendezvous_of(place, place.rank, place.size, options)),
              place.rank, place.size, options);
}

c10::intrusive_ptr<c10d::Store> rendezvous_of(const ProcessTopology& place, int id, int size,
                                              const CommunicatorOptions& options) {
  if (!place.rendezvous_file.empty())
    return open_rendezvous(place.rendezvous_file, options);
  require_option(
      !place.rendezvous_host.empty() && place.rendezvous_port != 0,
      describe(place)
          + " names no rendezvous; set MASTER_ADDR to the address of rank 0, and MASTER_PORT "
            "to a free port there");
  if (!place.rendezvous_served)
    return make_rendezvous(place.rendezvous_host, place.rendezvous_port, id, size, options);
  return c10::make_intrusive<c10d::PrefixStore>(
      "attempt " + std::to_string(place.attempt),
      connect_rendezvous(place.rendezvous_host, place.rendezvous_port, options));
}

} // namespace troupe::collectives
