#include "actors/supervision/strategies.hpp"

#include <stdexcept>

#include "collectives/communicator.hpp"

namespace troupe::actors {
namespace {

using learner::StrategyKind;

void require(bool held, const std::string& message) {
  if (!held)
    throw std::invalid_argument(message);
}

learner::StrategyOptions parsed(const RunConfig& config) {
  learner::StrategyOptions options;
  try {
    options = learner::parse_strategy(config.learner.strategy);
    learner::replicas_in_sync(options, config.learner.replicas);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("learner.strategy \"" + config.learner.strategy
                                + "\": " + error.what());
  }
  require(options.replicas == 1 && options.backend == "auto" && options.servers.empty(),
          "learner.strategy \"" + config.learner.strategy
              + "\": replicas and backend have their own keys, learner.replicas and "
                "learner.backend, and the run starts the parameter servers");
  return options;
}

bool is_asynchronous(StrategyKind kind) {
  return kind == StrategyKind::parameter_server || kind == StrategyKind::sync_groups
         || kind == StrategyKind::backup_workers;
}

} // namespace

learner::StrategyOptions strategy_of(const RunConfig& config, bool processes,
                                     const std::vector<std::string>& servers) {
  auto options = parsed(config);
  const auto& backend = config.learner.backend;
  if (config.learner.replicas > 1) {
    require(!processes || backend != "threads", "learner.backend \"threads\" needs a single "
                                                "process; leave --processes out, or choose auto, "
                                                "shared_memory, tcp or nccl");
    require(processes || backend == "auto" || backend == "threads",
            "learner.backend \"" + backend
                + "\" works between processes; add --processes, or choose auto or threads");
    require(!config.deterministic || !is_asynchronous(options.kind),
            "deterministic: true with learner.strategy \"" + config.learner.strategy
                + "\", in which replicas do not wait for each other; use multi_worker, "
                  "central_storage or local_sgd");
  }
  require(config.learner.parameter_servers == 1 || learner::has_servers(options.kind),
          "learner.parameter_servers " + std::to_string(config.learner.parameter_servers)
              + " with learner.strategy \"" + config.learner.strategy
              + "\", which has none; leave it out, or choose parameter_server, sync_groups, "
                "backup_workers or central_storage");
  if (processes && options.kind == StrategyKind::mirrored)
    options.kind = StrategyKind::multi_worker;
  options.replicas = processes ? 1 : config.learner.replicas;
  options.backend = backend == "threads" ? "auto" : backend;
  options.servers = servers;
  return options;
}

at::Device device_of_learner(const RunConfig& config, bool processes, int replica) {
  const auto& wanted = config.learner.device;
  const bool threads = !processes && config.learner.replicas > 1; // which exchange on the CPU
  require(wanted != "cuda" || !threads,
          "learner.device \"cuda\" with learner.replicas " + std::to_string(config.learner.replicas)
              + " needs one process per replica; add --processes, or choose auto or cpu");
  if (wanted == "cpu" || (wanted == "auto" && (threads || config.deterministic)))
    return at::kCPU;
  const int devices = collectives::cuda_device_count();
  require(devices > 0 || wanted != "cuda",
          "learner.device \"cuda\": " + collectives::nccl_unavailable_reason()
              + "; or choose auto or cpu");
  return devices > 0 ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(replica % devices))
                     : at::Device(at::kCPU);
}

bool has_servers(const RunConfig& config) {
  return learner::has_servers(parsed(config).kind);
}

learner::ParameterServerOptions server_options(const RunConfig& config) {
  return learner::server_options(parsed(config), config.learner.replicas);
}

bool has_strategy(const RunConfig& config) {
  return config.learner.replicas > 1 || has_servers(config);
}

bool step_alone(const RunConfig& config) {
  return config.learner.replicas > 1 && parsed(config).kind == StrategyKind::parameter_server;
}

bool step_together(const RunConfig& config) {
  const auto kind = parsed(config).kind;
  return config.learner.replicas > 1 && kind != StrategyKind::parameter_server
         && kind != StrategyKind::backup_workers;
}

std::int64_t rows_per_replica(const RunConfig& config) {
  const auto in_sync = learner::replicas_in_sync(parsed(config), config.learner.replicas);
  require(config.agent->batch_size() % in_sync == 0,
          "the agent's batch_size " + std::to_string(config.agent->batch_size())
              + " is not divisible by the " + std::to_string(in_sync)
              + " replicas that share it (learner.replicas "
              + std::to_string(config.learner.replicas) + ", learner.strategy \""
              + config.learner.strategy + "\"); choose a multiple");
  return config.agent->batch_size() / in_sync;
}

} // namespace troupe::actors
