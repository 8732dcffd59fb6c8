#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "collectives/backends/hierarchical_backend.hpp"
#include "collectives/groups/make_communicator.hpp"
#include "collectives/rendezvous/group_trust.hpp"
#include "collectives/rendezvous/over_store.hpp"
#include "env/wire/context.hpp"
#include "env/wire/deployment_keys.hpp"
#include "learner/gradients/local_sgd_rule.hpp"
#include "learner/parameter_server/client_abort.hpp"
#include "learner/parameter_server/parameter_server_client.hpp"
#include "learner/parameter_server/parameter_server_host.hpp"
#include "learner/parameter_server/parameter_server_rule.hpp"
#include "learner/replicas/strategy_options.hpp"

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::ProcessTopology;

constexpr const char* kEndpointKey = "troupe/parameter_server";
constexpr const char* kDoneKey = "troupe/done";  // counts the processes that are done
const std::string kLoadedKey = "troupe/loaded/"; // <optimizer>/<load>: the chief has loaded it
constexpr std::chrono::milliseconds kDonePoll{20};

/// Decides which replicas of one or more processes step together, and how they exchange data
/// otherwise. A worker of the parameter servers is either a replica or a sync group.
class ConfiguredStrategy : public Strategy {
public:
  ConfiguredStrategy(const StrategyOptions& options, const ProcessTopology& place);
  ~ConfiguredStrategy() override;

  int num_replicas() const override { return options_.replicas * place_.size; }
  int num_local_replicas() const override { return options_.replicas; }
  int worker() const override { return place_.rank; }
  int num_workers() const override { return place_.size; }
  ReplicaAssignment assignment(int local_id) override;
  void abort(const std::string& reason) override;

private:
  /// Whether replicas wait for each other in collectives.
  bool waits() const { return options_.kind != StrategyKind::backup_workers; }
  bool servers_are_remote() const { return !options_.servers.empty() || place_.size > 1; }
  void check() const;
  std::string host_endpoint() const;
  std::unique_ptr<Communicator> meet(int group, int rank, c10::intrusive_ptr<c10d::Store>& store);
  std::vector<std::string> endpoints(c10d::Store* store, int replica_id);
  UpdateRuleFactory rules(Communicator* communicator, int group, c10d::Store* store,
                          int replica_id);
  void add_checkpoints(ParameterServerRuleOptions& rule, c10d::Store& store);
  int own_workers() const;

  StrategyOptions options_;
  ProcessTopology place_;
  int groups_ = 1;     // number of sync groups
  int group_size_ = 1; // replicas in each group
  std::unique_ptr<env::wire::Context> context_;
  std::shared_ptr<ClientAbort> client_abort_;    // for the replicas of this process
  std::unique_ptr<ParameterServerHost> host_;    // on the chief, for other processes
  std::unique_ptr<LocalParameterServer> server_; // for threads of this process
  std::vector<std::vector<std::unique_ptr<Communicator>>> threads_; // [group][rank]
  collectives::StoreFactory threads_factory_ = collectives::threads_over_store();
  std::mutex mutex_; // guards the members below
  bool aborted_ = false;
  std::vector<c10::intrusive_ptr<c10d::Store>> stores_; // kept alive: the chief's serves the others
  std::vector<std::unique_ptr<Communicator>> met_;      // [local id]; several processes only
};

void ConfiguredStrategy::check() const {
  const auto require = [&](bool held, const std::string& message) {
    if (!held)
      throw std::invalid_argument("strategy " + strategy_name(options_.kind) + ": " + message);
  };
  require(options_.replicas >= 1,
          "replicas " + std::to_string(options_.replicas) + " must be at least 1");
  require(options_.devices.empty()
              || options_.devices.size() == static_cast<std::size_t>(options_.replicas),
          "devices of " + std::to_string(options_.devices.size()) + " replicas were given for "
              + std::to_string(options_.replicas) + "; give each a list, or none at all");
  if (options_.kind == StrategyKind::mirrored)
    require(place_.size == 1, "it works within one process, but there are "
                                  + std::to_string(place_.size) + "; use multi_worker");
  replicas_in_sync(options_, num_replicas());
}

ConfiguredStrategy::ConfiguredStrategy(const StrategyOptions& options, const ProcessTopology& place)
    : options_(options), place_(place), met_(static_cast<std::size_t>(options.replicas)) {
  check();
  options_.communicator = collectives::with_trust(options_.communicator, place_);
  groups_ = options_.kind == StrategyKind::sync_groups        ? options_.sync_groups
            : options_.kind == StrategyKind::parameter_server ? num_replicas()
                                                              : 1;
  group_size_ = num_replicas() / groups_;
  if (options_.backend == "mpi" && place_.size > 1 && (options_.replicas > 1 || groups_ > 1)
      && group_size_ > 1 && waits())
    throw std::invalid_argument("strategy " + strategy_name(options_.kind)
                                + ": backend mpi connects one replica of each process in one "
                                  "group; use replicas=1 in one group, or another backend");
  if (place_.size == 1 && group_size_ > 1 && waits())
    for (int group = 0; group < groups_; ++group)
      threads_.push_back(
          collectives::make_thread_communicators(group_size_, options_.communicator));
  if (!has_servers(options_.kind))
    return;
  if (!servers_are_remote()) {
    server_ = std::make_unique<LocalParameterServer>(server_options(options_, num_replicas()),
                                                     options_.communicator.timeout);
    return;
  }
  context_ = std::make_unique<env::wire::Context>(1, options_.keys);
  client_abort_ = std::make_shared<ClientAbort>();
  if (options_.servers.empty() && place_.rank == 0)
    host_ = std::make_unique<ParameterServerHost>(
        *context_, ParameterServerHostOptions{.server = server_options(options_, num_replicas()),
                                              .endpoint = host_endpoint()});
}

/// Returns the endpoint at which the chief listens. It serves only its own host, unless there are
/// other hosts and keys for them.
std::string ConfiguredStrategy::host_endpoint() const {
  const bool one_host = place_.local_size == place_.size || place_.address.empty();
  return "tcp://" + (one_host || !options_.keys ? std::string("127.0.0.1") : place_.address) + ":*";
}

std::unique_ptr<Communicator> ConfiguredStrategy::meet(int group, int rank,
                                                       c10::intrusive_ptr<c10d::Store>& store) {
  if (group_size_ == 1 || !waits())
    return nullptr;
  if (options_.backend == "mpi")
    return collectives::make_communicator("mpi", place_, options_.communicator);
  auto communicator = options_.communicator;
  communicator.trust.private_store = communicator.trust.private_store || options_.rendezvous;
  const auto tensors = options_.devices.empty() || options_.devices[0].empty()
                           ? at::kCPU
                           : options_.devices[0][0].type();
  const auto between = collectives::factory_of(options_.backend, place_, tensors);
  const auto factory =
      options_.replicas == 1
          ? between
          : collectives::hierarchical_over_store(
              threads_factory_, between, "process " + std::to_string(place_.rank), place_.address);
  return factory(c10::make_intrusive<c10d::PrefixStore>("group" + std::to_string(group), store),
                 rank, group_size_, communicator);
}

std::vector<std::string> ConfiguredStrategy::endpoints(c10d::Store* store, int replica_id) {
  if (!options_.servers.empty())
    return options_.servers;
  if (replica_id == 0)
    store->set(kEndpointKey, host_->endpoint());
  // Any process may write to the store, so the server must have the deployment's own key, whatever
  // the store says.
  return {env::wire::split_endpoint(store->get_to_str(kEndpointKey)).address};
}

UpdateRuleFactory ConfiguredStrategy::rules(Communicator* communicator, int group,
                                            c10d::Store* store, int replica_id) {
  if (options_.kind == StrategyKind::local_sgd)
    return local_sgd_rules(communicator, {.period = options_.local_steps,
                                          .average_moments = options_.average_moments});
  if (!has_servers(options_.kind))
    return {};
  const bool groups = options_.kind == StrategyKind::sync_groups;
  ParameterServerRuleOptions rule{.communicator = groups ? communicator : nullptr};
  const int worker = groups ? group : replica_id;
  if (server_)
    return local_parameter_server_rules(*server_, worker, rule);
  ParameterServerClientOptions client{.endpoints = endpoints(store, replica_id), .worker = worker};
  client.timeout = options_.communicator.timeout;
  client.abort = client_abort_;
  if (options_.servers.empty())
    add_checkpoints(rule, *store);
  return remote_parameter_server_rules(*context_, client, rule);
}

/// The chief's replicas save and load the parameters that it serves; the others wait until it has
/// loaded them.
void ConfiguredStrategy::add_checkpoints(ParameterServerRuleOptions& rule, c10d::Store& store) {
  rule.snapshot = [this](int optimizer) {
    return host_ ? host_->snapshot(optimizer) : TensorMap{};
  };
  rule.replace = [this, &store](int optimizer, const TensorMap& snapshot, std::int64_t load) {
    const auto key = kLoadedKey + std::to_string(optimizer) + "/" + std::to_string(load);
    if (host_) {
      host_->replace(optimizer, snapshot, load);
      store.set(key, "1");
      return;
    }
    try {
      store.wait({key}, options_.communicator.timeout);
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string("load: replica 0, whose process serves the parameters, "
                                           "has not loaded them: ")
                               + error.what());
    }
  };
}

/// The number of servers' workers in this process. On the chief, they are the first ones.
int ConfiguredStrategy::own_workers() const {
  return options_.kind == StrategyKind::sync_groups
             ? (options_.replicas + group_size_ - 1) / group_size_
             : options_.replicas;
}

ReplicaAssignment ConfiguredStrategy::assignment(int local_id) {
  const int id = place_.rank * options_.replicas + local_id;
  const int group = id / group_size_, rank = id % group_size_;
  c10::intrusive_ptr<c10d::Store> store;
  Communicator* communicator = nullptr;
  if (!threads_.empty()) {
    communicator = threads_[static_cast<std::size_t>(group)][static_cast<std::size_t>(rank)].get();
  } else if (place_.size > 1) {
    store = options_.rendezvous
                ? options_.rendezvous()
                : collectives::rendezvous_of(place_, id, num_replicas(), options_.communicator);
    auto met = meet(group, rank, store);
    const std::lock_guard lock(mutex_);
    stores_.push_back(store);
    communicator = (met_[static_cast<std::size_t>(local_id)] = std::move(met)).get();
  }
  return {.replica_id = id,
          .num_replicas = num_replicas(),
          .local_id = local_id,
          .sync_group = group,
          .num_sync_groups = groups_,
          .communicator = communicator,
          .replicas_in_sync = replicas_in_sync(options_, num_replicas()),
          .update_rule = rules(communicator, group, store.get(), id),
          .own_parameters = options_.kind == StrategyKind::local_sgd,
          .devices = options_.devices.empty()
                         ? std::vector<at::Device>{}
                         : options_.devices[static_cast<std::size_t>(local_id)]};
}

void ConfiguredStrategy::abort(const std::string& reason) {
  for (auto& group : threads_)
    group[0]->abort(reason);
  if (server_)
    server_->abort(reason);
  if (client_abort_)
    client_abort_->abort(reason);
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  for (auto& communicator : met_)
    if (communicator)
      communicator->abort(reason);
}

/// A chief that serves the parameters waits until the other processes finish or this one fails, but
/// not longer than the timeout after the last of their workers has left or gone silent.
ConfiguredStrategy::~ConfiguredStrategy() {
  if (stores_.empty() || !has_servers(options_.kind) || !options_.servers.empty())
    return;
  met_.clear();
  try {
    auto done = stores_.front()->add(kDoneKey, 1);
    auto deadline = std::chrono::steady_clock::now() + options_.communicator.timeout;
    while (place_.rank == 0 && !aborted_ && done < place_.size
           && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(kDonePoll);
      done = stores_.front()->add(kDoneKey, 0);
      if (host_->has_workers(own_workers()))
        deadline = std::chrono::steady_clock::now() + options_.communicator.timeout;
    }
  } catch (const std::exception&) { // the chief has ended, so it need not be informed
  }
}

} // namespace

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options,
                                        const ProcessTopology& place) {
  return std::make_unique<ConfiguredStrategy>(options, place);
}

std::unique_ptr<Strategy>
make_mirrored_strategy(int replicas, const collectives::CommunicatorOptions& options,
                       const std::vector<std::vector<at::Device>>& devices) {
  StrategyOptions made;
  made.replicas = replicas;
  made.devices = devices;
  made.communicator = options;
  return make_strategy(made);
}

} // namespace troupe::learner
