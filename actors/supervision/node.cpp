#include <filesystem>
#include <stdexcept>
#include <thread>

#include "actors/protocol/messages.pb.h"
#include "actors/protocol/system.hpp"
#include "actors/remoting/remoting.hpp"
#include "actors/supervision/node.hpp"
#include "actors/supervision/node_actor.hpp"
#include "actors/supervision/node_info.hpp"

namespace troupe::actors {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kNodePoll{200};
constexpr std::chrono::seconds kRetry{1};
constexpr std::chrono::seconds kAnswer{20};

/// One stay of a node in a run: from the join until the run is over or the head is lost.
class Stay {
public:
  Stay(caf::actor_system& system, const NodeConfig& config, SupervisorActor head)
      : self_(system, true), config_(config), head_(std::move(head)), life_(random_life()) {}
  ~Stay() {
    if (!node_)
      return;
    self_->request(*node_, kAnswer, stop_atom_v).receive([](done_atom) {}, [](caf::error&) {});
    self_->send_exit(*node_, caf::exit_reason::user_shutdown);
  }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

  /// True: the run is over. False: the head is lost, or `stop` is set.
  bool run(caf::actor_system& system, const std::atomic<bool>& stop) {
    self_->monitor(head_);
    join(system);
    return beat(stop);
  }

private:
  void join(caf::actor_system& system) {
    node_ = system.spawn(node_actor, NodeOptions{.start_process = config_.start_process,
                                                 .supervisor = head_,
                                                 .head_host = config_.head_host});
    std::string problem;
    self_
        ->request(head_, kAnswer, node_atom_v, encode(node_info(config_.resources, life_)),
                  caf::actor_cast<caf::actor>(*node_), caf::actor(self_))
        .receive([&](const ProtoBytes& welcome) { welcome_ = decode<wire::NodeWelcome>(welcome); },
                 [&](caf::error& error) { problem = explain(self_->system(), error); });
    if (!problem.empty())
      throw std::runtime_error("the head did not let this node in: " + problem);
    if (std::error_code ignored; !std::filesystem::exists(welcome_.config(), ignored))
      throw std::runtime_error(
          "the run's " + welcome_.config()
          + " is not there: the folder for runs must lie on a file system that "
            "all nodes share, at the same path");
    config_.log("joined as " + config_.resources.name);
  }

  bool beat(const std::atomic<bool>& stop) {
    const int patience =
        static_cast<int>(welcome_.lost_seconds() / welcome_.heartbeat_seconds()) + 1;
    const auto period = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(welcome_.heartbeat_seconds()));
    int unanswered = 0;
    auto next = Clock::now();
    std::string lost;
    while (lost.empty() && !over_ && !stop) {
      if (Clock::now() >= next) {
        if (++unanswered > patience)
          lost = "the head is silent";
        self_->send(head_, node_atom_v, config_.resources.name, life_, caf::actor(self_));
        next = Clock::now() + period;
      }
      self_->receive([&](const caf::down_msg&) { lost = "the connection to the head broke"; },
                     [&](beat_atom) { unanswered = 0; },
                     [&](stop_atom) { lost = "the head had given this node up"; },
                     [&](done_atom) { over_ = true; },
                     caf::after(std::min<Clock::duration>(kNodePoll, period)) >> [] {});
    }
    if (!lost.empty())
      config_.log(lost + "; what ran here is ended");
    return over_;
  }

  caf::scoped_actor self_;
  const NodeConfig& config_;
  SupervisorActor head_;
  std::uint64_t life_;
  std::optional<NodeActor> node_;
  wire::NodeWelcome welcome_;
  bool over_ = false;
};

} // namespace

int run_node(const NodeConfig& config, const std::atomic<bool>& stop) {
  node_resources(node_info(config.resources, 0)); // finds what the head would refuse
  SystemConfig system_config(true);
  caf::actor_system system(system_config);
  Remoting remoting(system, {.keys = config.keys});
  const auto patience = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(config.join_seconds));
  auto deadline = Clock::now() + patience;
  std::string problem = "no time was left to try";
  while (!stop && Clock::now() < deadline) {
    try {
      Stay stay(system, config,
                remoting.connect<SupervisorActor>(config.head_host, config.head_port));
      const auto joined = Clock::now();
      if (stay.run(system, stop))
        return 0;
      problem = "the head was lost";
      if (Clock::now() - joined > kRetry)
        deadline = Clock::now() + patience;
    } catch (const std::invalid_argument&) {
      throw;
    } catch (const std::runtime_error& e) {
      problem = e.what();
    }
    std::this_thread::sleep_for(kRetry);
  }
  if (stop)
    throw std::runtime_error("this node was asked to stop before the run was over");
  throw std::runtime_error("gave up after " + std::to_string(static_cast<int>(config.join_seconds))
                           + " s without a head at " + config.head_host + ":"
                           + std::to_string(config.head_port) + ": " + problem);
}

} // namespace troupe::actors
