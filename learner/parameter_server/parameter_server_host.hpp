#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/wire/socket.hpp"
#include "learner/parameter_server/parameter_server.hpp"

namespace troupe::learner {

struct ParameterServerHostOptions {
  ParameterServerOptions server = {};
  OptimizerMaker make_optimizer = learner::make_optimizer;
  std::string endpoint = "tcp://127.0.0.1:*";
  int most_optimizers = 16;                      // per worker; each has a separate server
  std::size_t most_bytes = std::size_t{8} << 30; // limit on the parameters of one optimizer
  std::optional<env::wire::SharedMemory> shared_memory = env::wire::SharedMemory{};
  std::optional<env::wire::ServerKeys> keys{}; // required unless the endpoint is on loopback
  /// A safetensors file, written by load(), after every `snapshot_period` in which something
  /// changed, and when the host ends. Read when the host starts. Empty: no snapshots.
  std::filesystem::path snapshot{};
  std::chrono::milliseconds snapshot_period{5'000};
  /// Receives messages for people: invalid messages, lost workers, a full disk. Called on the
  /// host's threads and by load().
  std::function<void(const std::string&)> log = [](const std::string&) {};
  int shard = 0; // index of this server among the workers' servers
  int shards = 1;
};

struct ParameterServerHostCounters {
  std::int64_t garbage = 0;   // invalid messages dropped
  std::int64_t strangers = 0; // connections refused because of their keys
  std::int64_t shared = 0;    // frames sent or received through shared memory
  std::int64_t snapshots = 0; // snapshots written
};

/// Serves one shard of the parameters to other processes, through a ROUTER socket and a thread. The
/// host starts without parameters and gets them from the workers or from its snapshot. Any thread
/// may call the public functions.
class ParameterServerHost {
public:
  /// Throws std::invalid_argument like check(), std::runtime_error if the endpoint cannot be bound
  /// or the snapshot cannot be read.
  ParameterServerHost(env::wire::Context& context, const ParameterServerHostOptions& options = {});
  ~ParameterServerHost();
  ParameterServerHost(const ParameterServerHost&) = delete;
  ParameterServerHost& operator=(const ParameterServerHost&) = delete;

  const std::string& endpoint() const; // includes the port
  ParameterServerHostCounters counters() const;
  /// Returns the counters of the workers' optimizer number `optimizer`, or zeros if no worker has
  /// connected.
  ParameterServerCounters server_counters(int optimizer = 0) const;
  std::int64_t version(int optimizer = 0) const;
  int optimizers() const;            // one more than the largest optimizer number seen
  bool has_workers(int first) const; // as ParameterServer::has_workers(), of any optimizer

  /// As ParameterServer::snapshot() and replace(). Throw std::invalid_argument if no worker has
  /// connected with that optimizer.
  TensorMap snapshot(int optimizer) const;
  void replace(int optimizer, const TensorMap& snapshot, std::int64_t load);

  /// Writes this shard's part of a checkpoint. Throws std::runtime_error naming the file and the
  /// reason.
  void save(const std::filesystem::path& path) const;
  /// Loads this shard's part of a checkpoint; must be called before any worker connects. `files`
  /// contains one file for each shard of the checkpoint, in order. If the number of shards has
  /// changed, the checkpoint is redistributed. Throws std::runtime_error naming the file and the
  /// reason.
  void load(const std::vector<std::filesystem::path>& files);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::learner
