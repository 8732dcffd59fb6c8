#include <chrono>
#include <stdexcept>

#include "learner/parameter_server_host_impl.hpp"
#include "learner/safetensors.hpp"

namespace troupe::learner {

// Tensors of a snapshot are named "<optimizer>/<name of ParameterServer::snapshot()>".

void ParameterServerHost::Impl::load(const std::filesystem::path& path) {
  const auto fail = [&path](const std::string& what) {
    throw std::runtime_error("'" + path.string() + "' " + what);
  };
  std::map<std::uint32_t, TensorMap> snapshots_read;
  for (auto& [name, tensor] : read_safetensors(path).tensors) {
    const auto slash = name.find('/');
    const std::string number = name.substr(0, slash);
    if (slash == std::string::npos || number.empty() || number.size() > 4
        || number.find_first_not_of("0123456789") != std::string::npos)
      fail("has a tensor \"" + name
           + "\": it is no snapshot of a parameter server. Give another file");
    snapshots_read[static_cast<std::uint32_t>(std::stoul(number))][name.substr(slash + 1)] = tensor;
  }
  const std::scoped_lock lock(mutex);
  for (const auto& [optimizer, tensors] : snapshots_read) {
    Served* to = served(optimizer);
    if (!to)
      fail("is of optimizer " + std::to_string(optimizer) + "; most_optimizers is "
           + std::to_string(options.most_optimizers));
    try {
      to->server.restore(tensors);
    } catch (const std::exception& e) {
      fail(std::string("cannot be restored: ") + e.what());
    }
    to->saved = to->server.version();
  }
}

void ParameterServerHost::Impl::save_on(const std::stop_token& stop) {
  bool failing = false;
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(saving_mutex);
      saving.wait_for(lock, stop, options.snapshot_period, [] { return false; });
    }
    try { // also when it ends: the last state
      save(options.snapshot, true);
      failing = false;
    } catch (const std::exception& e) {
      if (!failing)
        options.log("parameter server " + endpoint + ": no snapshot: " + e.what());
      failing = true;
    }
  }
}

void ParameterServerHost::Impl::save(const std::filesystem::path& path, bool only_changes) {
  TensorMap tensors;
  std::map<std::uint32_t, std::int64_t> versions;
  bool changed = false;
  {
    const std::scoped_lock lock(mutex);
    for (const auto& [optimizer, one] : servers)
      changed = changed || (one->server.has_begun() && one->saved != one->server.version());
    if (only_changes && !changed)
      return;
    for (const auto& [optimizer, one] : servers) {
      if (!one->server.has_begun())
        continue;
      versions[optimizer] = one->server.version();
      for (auto& [name, tensor] : one->server.snapshot())
        tensors[std::to_string(optimizer) + "/" + name] = std::move(tensor);
    }
  }
  write_safetensors(path, tensors, {{"format", "troupe parameter server"}});
  ++snapshots;
  if (!only_changes)
    return;
  const std::scoped_lock lock(mutex);
  for (const auto& [optimizer, version] : versions)
    servers.at(optimizer)->saved = version;
}

} // namespace troupe::learner
