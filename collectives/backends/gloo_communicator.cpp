#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <cstdlib>

#include "collectives/backends/backend_communicator.hpp"
#include "collectives/backends/checked_backend.hpp"
#include "collectives/mesh/no_pipe_signal.hpp"
#include "collectives/rendezvous/over_store.hpp"
#include "collectives/rendezvous/rendezvous.hpp"

namespace troupe::collectives {

namespace {

/// LibTorch's flight recorder records every collective of every group in one table, and adds a
/// group to it without its lock: groups of two threads sometimes crash. It reads its size at its
/// first use, so this is set before main(), while there is one thread. 0 turns it off; a value set
/// by the user stays.
[[maybe_unused]] const int kNoFlightRecorder = setenv("TORCH_FR_BUFFER_SIZE", "0", 0);

} // namespace

StoreFactory gloo_over_store(const std::string& interface_host) {
  return [interface_host](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                          const CommunicatorOptions& options) -> std::unique_ptr<Communicator> {
    const auto mesh = make_control_mesh(*store, interface_host, rank, size, options);
    const NoPipeSignal guard;
    auto gloo = c10d::ProcessGroupGloo::Options::create(options.connect_timeout);
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(interface_host));
    auto inner = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>("gloo", store), rank, size, gloo);
    inner->setTimeout(options.timeout);
    CheckedBackend::Options checked;
    checked.name = "gloo";
    checked.holds_thread = true;
    return std::make_unique<BackendCommunicator>(
        c10::make_intrusive<CheckedBackend>(std::move(inner), mesh, checked), at::kCPU);
  };
}

std::unique_ptr<Communicator> make_gloo_communicator(const std::string& host, int port, int rank,
                                                     int size, const CommunicatorOptions& options,
                                                     const std::string& interface_host) {
  return gloo_over_store(interface_host)(make_rendezvous(host, port, rank, size, options), rank,
                                         size, options);
}

} // namespace troupe::collectives
