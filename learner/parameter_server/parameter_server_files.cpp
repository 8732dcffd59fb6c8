#include <chrono>
#include <stdexcept>

#include "learner/device/safetensors.hpp"
#include "learner/parameter_server/parameter_server_host_impl.hpp"
#include "learner/parameter_server/parameter_server_snapshot.hpp"

namespace troupe::learner {

// Tensors of a snapshot are named "<optimizer>/<name of ParameterServer::snapshot()>". The metadata
// contain the index of the shard and the number of shards.

namespace {

using Snapshots = std::map<std::uint32_t, TensorMap>; // of one shard, by optimizer

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw std::runtime_error("'" + path.string() + "' " + what);
}

std::string metadata_of(const Safetensors& file, const std::string& name) {
  const auto found = file.metadata.find(name);
  return found == file.metadata.end() ? "" : found->second;
}

Snapshots snapshots_of(const std::filesystem::path& path, Safetensors&& file) {
  Snapshots found;
  for (auto& [name, tensor] : file.tensors) {
    const auto slash = name.find('/');
    const std::string number = name.substr(0, slash);
    if (slash == std::string::npos || number.empty() || number.size() > 4
        || number.find_first_not_of("0123456789") != std::string::npos)
      fail(path, "has a tensor \"" + name
                     + "\": it is not a snapshot of a parameter server. Give another file");
    found[static_cast<std::uint32_t>(std::stoul(number))][name.substr(slash + 1)] = tensor;
  }
  for (const auto& [optimizer, tensors] : found)
    try {
      check_snapshot(tensors);
    } catch (const std::exception& e) {
      fail(path, std::string("cannot be restored: ") + e.what());
    }
  return found;
}

} // namespace

void ParameterServerHost::Impl::restore(std::uint32_t optimizer, const TensorMap& tensors,
                                        const std::filesystem::path& path) {
  Served* to = served(optimizer);
  if (!to)
    fail(path, "is of optimizer " + std::to_string(optimizer) + "; most_optimizers is "
                   + std::to_string(options.most_optimizers));
  try {
    to->server.restore(tensors);
  } catch (const std::exception& e) {
    fail(path, std::string("cannot be restored: ") + e.what());
  }
}

void ParameterServerHost::Impl::go_on_from(const std::filesystem::path& path) {
  const auto read = snapshots_of(path, read_safetensors(path));
  const std::scoped_lock lock(mutex);
  for (const auto& [optimizer, tensors] : read) {
    restore(optimizer, tensors, path);
    Served& to = *servers.at(optimizer);
    to.saved = to.server.version();
  }
}

void ParameterServerHost::Impl::load(const std::vector<std::filesystem::path>& files) {
  std::map<std::uint32_t, std::vector<TensorMap>> read; // [optimizer][former shard]
  for (std::size_t i = 0; i < files.size(); ++i) {
    Safetensors file = read_safetensors(files[i]);
    const auto shard = metadata_of(file, "shard"), shards = metadata_of(file, "shards");
    if (shard != std::to_string(i) || shards != std::to_string(files.size()))
      fail(files[i], "is shard \"" + shard + "\" of \"" + shards + "\" of parameter servers, not "
                         + std::to_string(i) + " of " + std::to_string(files.size())
                         + "; a checkpoint needs all of them, use another one of the run");
    for (auto& [optimizer, tensors] : snapshots_of(files[i], std::move(file)))
      read[optimizer].push_back(std::move(tensors));
  }
  {
    const std::scoped_lock lock(mutex);
    for (const auto& [optimizer, parts] : read) {
      std::vector<TensorMap> spread;
      try {
        spread = reshard(parts, options.shards);
      } catch (const std::exception& e) {
        fail(files.front().parent_path(), std::string("cannot be restored: ") + e.what());
      }
      restore(optimizer, spread.at(static_cast<std::size_t>(options.shard)),
              files.at(static_cast<std::size_t>(options.shard) % files.size()));
    }
  }
  if (options.snapshot.empty())
    return;
  const std::scoped_lock lock(saving_mutex);
  save_changes(); // a server that is killed now must not start without what it loaded
}

void ParameterServerHost::Impl::save_on(const std::stop_token& stop) {
  std::unique_lock lock(saving_mutex);
  for (bool last = false; !last;) { // saves once more after a stop request
    saving.wait_for(lock, stop, options.snapshot_period, [] { return false; });
    last = stop.stop_requested();
    save_changes();
  }
}

void ParameterServerHost::Impl::save_changes() {
  try {
    save(options.snapshot, true);
    failing = false;
  } catch (const std::exception& e) {
    if (!failing)
      options.log("parameter server " + endpoint + ": no snapshot: " + e.what());
    failing = true;
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
  write_safetensors(path, tensors,
                    {{"format", "troupe parameter server"},
                     {"shard", std::to_string(options.shard)},
                     {"shards", std::to_string(options.shards)}});
  ++snapshots;
  if (!only_changes)
    return;
  const std::scoped_lock lock(mutex);
  for (const auto& [optimizer, version] : versions)
    servers.at(optimizer)->saved = version;
}

} // namespace troupe::learner
