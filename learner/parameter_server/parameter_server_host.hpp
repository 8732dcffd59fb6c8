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
  int most_optimizers = 16;                      // of the workers, each with a separate server
  std::size_t most_bytes = std::size_t{8} << 30; // of the parameters of one
  std::optional<env::wire::SharedMemory> shared_memory = env::wire::SharedMemory{};
  std::optional<env::wire::ServerKeys> keys{}; // needed to bind something else than loopback
  /// A safetensors file, written every `snapshot_period` in which something changed, and when the
  /// host ends; read when it begins. Empty: none.
  std::filesystem::path snapshot{};
  std::chrono::milliseconds snapshot_period{5'000};
  /// For people: garbage, workers given up, a disk that is full. On threads of the host's.
  std::function<void(const std::string&)> log = [](const std::string&) {};
  int shard = 0; // which of the workers' servers this is
  int shards = 1;
};

struct ParameterServerHostCounters {
  std::int64_t garbage = 0;   // messages dropped
  std::int64_t strangers = 0; // connections refused for their keys
  std::int64_t shared = 0;    // frames that went through shared memory, either way
  std::int64_t snapshots = 0; // written
};

/// One shard of the parameters served to other processes: a ROUTER socket and the thread that
/// decides. Starts empty and gets parameters from the workers, or from its snapshot. Public
/// functions: any thread.
class ParameterServerHost {
public:
  /// Throws std::invalid_argument as check(), std::runtime_error when the endpoint cannot be bound
  /// or the snapshot not be read.
  ParameterServerHost(env::wire::Context& context, const ParameterServerHostOptions& options = {});
  ~ParameterServerHost();
  ParameterServerHost(const ParameterServerHost&) = delete;
  ParameterServerHost& operator=(const ParameterServerHost&) = delete;

  const std::string& endpoint() const; // with the port
  ParameterServerHostCounters counters() const;
  /// Of the workers' optimizer of this number; zeros where no worker has come.
  ParameterServerCounters server_counters(int optimizer = 0) const;
  std::int64_t version(int optimizer = 0) const;
  int optimizers() const; // of the workers that have come: numbers below this

  /// This shard's part of a checkpoint, now. Throws std::runtime_error naming file and reason.
  void save(const std::filesystem::path& path) const;
  /// Before the workers come, which are new ones: this shard's part of a checkpoint that `files`
  /// hold, one for each shard there was, in order; of another number of shards it is redistributed.
  /// Throws std::runtime_error naming the file and the reason.
  void load(const std::vector<std::filesystem::path>& files);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::learner
