#include <filesystem>
#include <stdexcept>
#include <thread>

#include "actors/protocol/messages.pb.h"
#include "actors/protocol/system.hpp"
#include "actors/remoting/remoting.hpp"
#include "actors/supervision/node.hpp"
#include "actors/supervision/node_actor.hpp"
#include "actors/supervision/node_info.hpp"
#include "actors/supervision/process_table.hpp"

namespace troupe::actors {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kNodePoll{200};
constexpr std::chrono::seconds kRetry{1};
constexpr std::chrono::seconds kAnswer{20};
// Time for an answer. The request is then repeated, and the head gives the same answer.
constexpr std::chrono::seconds kComeBack{1};
constexpr std::chrono::milliseconds kNodeSearch{300}; // between two attempts to find a new head

/// One stay of a node in a run, from joining until the run is over or the head is lost. A head that
/// dies may have a successor, which takes over the processes of this node.
class Stay {
public:
  Stay(caf::actor_system& system, Remoting& remoting, const NodeConfig& config)
      : self_(system, true),
        remoting_(remoting),
        config_(config),
        head_(remoting.connect<SupervisorActor>(config.head_host, config.head_port)),
        life_(random_life()) {}
  ~Stay() {
    if (!node_)
      return;
    self_->request(*node_, kAnswer, stop_atom_v).receive([](done_atom) {}, [](caf::error&) {});
    self_->send_exit(*node_, caf::exit_reason::user_shutdown);
  }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

  /// Returns true if the run is over, false if the head is lost or `stop` is set.
  bool run(const std::atomic<bool>& stop) {
    node_ = self_->system().spawn(node_actor, NodeOptions{.start_process = config_.start_process,
                                                          .supervisor = head_,
                                                          .head_host = config_.head_host});
    self_->monitor(*node_);
    if (const auto problem = join({}, kAnswer))
      throw std::runtime_error("this node could not join the run: "
                               + explain(self_->system(), problem));
    if (std::error_code ignored; !std::filesystem::exists(welcome_.config(), ignored))
      throw std::runtime_error("the run's " + welcome_.config()
                               + " is missing: the folder for runs must be on a file system that "
                                 "all nodes share, at the same path");
    config_.log("joined as " + config_.resources.name);
    return beat(stop);
  }

private:
  caf::error join(const wire::NodeInfo& living, std::chrono::seconds patience) {
    self_->monitor(head_);
    auto info = node_info(config_.resources, life_);
    info.MergeFrom(living);
    caf::error problem;
    self_
        ->request(head_, patience, node_atom_v, encode(info), caf::actor_cast<caf::actor>(*node_),
                  caf::actor(self_))
        .receive([&](const ProtoBytes& welcome) { welcome_ = decode<wire::NodeWelcome>(welcome); },
                 [&](caf::error& error) { problem = std::move(error); });
    return problem;
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
          lost = "the head stopped answering";
        self_->send(head_, node_atom_v, config_.resources.name, life_, caf::actor(self_));
        next = Clock::now() + period;
      }
      self_->receive(
          [&](const caf::down_msg& down) {
            if (down.source == node_->address()) // they die with this process
              throw std::logic_error("the actor that manages this node's processes has ended");
            if (down.source != head_.address())
              return; // from the previous head
            lost = find_successor(stop);
            unanswered = 0;
          },
          [&](beat_atom) { unanswered = 0; },
          [&](stop_atom) { lost = "the head had given up on this node"; },
          [&](done_atom) { over_ = true; },
          caf::after(std::min<Clock::duration>(kNodePoll, period)) >> [] {});
    }
    if (!lost.empty())
      config_.log(lost + "; the processes on this node are stopped");
    return over_;
  }

  /// The connection to the head broke. Waits lost_seconds for another head of the same run, as the
  /// processes of this node do. Returns the problem, or "".
  std::string find_successor(const std::atomic<bool>& stop) {
    const auto patience = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(welcome_.lost_seconds()));
    config_.log(
        "the connection to the head broke; the processes on this node wait for the next head");
    for (const auto limit = Clock::now() + patience; !stop && Clock::now() < limit;) {
      try {
        head_ = remoting_.connect<SupervisorActor>(
            config_.head_host, config_.head_port,
            std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now())
                + kNodePoll);
        const auto problem = come_back();
        if (!problem)
          return "";
        if (problem == Fault::bad_request) // otherwise that head is lost, too
          return explain(self_->system(), problem);
      } catch (const std::runtime_error&) { // it is not listening yet
      }
      std::this_thread::sleep_for(kNodeSearch);
    }
    return "the head did not return within " + number(welcome_.lost_seconds())
           + " s after its connection broke";
  }

  /// Returns an error unless the head accepts this node again.
  caf::error come_back() {
    wire::NodeInfo living;
    self_->request(*node_, kAnswer, joined_atom_v, caf::actor_cast<caf::actor>(head_))
        .receive([&](const ProtoBytes& told) { living = decode<wire::NodeInfo>(told); },
                 [](caf::error&) {});
    living.set_epoch(welcome_.epoch());
    auto problem = join(living, kComeBack);
    if (!problem)
      config_.log("the head is back; living processes on this node: "
                  + std::to_string(living.living_size()));
    return problem;
  }

  caf::scoped_actor self_;
  Remoting& remoting_;
  const NodeConfig& config_;
  SupervisorActor head_;
  std::uint64_t life_;
  std::optional<NodeActor> node_;
  wire::NodeWelcome welcome_;
  bool over_ = false;
};

} // namespace

int run_node(const NodeConfig& config, const std::atomic<bool>& stop) {
  node_resources(node_info(config.resources, 0)); // fails where the head would refuse
  SystemConfig system_config(true);
  caf::actor_system system(system_config);
  Remoting remoting(system, {.keys = config.keys});
  const auto patience = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(config.join_seconds));
  auto deadline = Clock::now() + patience;
  std::string problem = "there was no time left to try";
  while (!stop && Clock::now() < deadline) {
    try {
      Stay stay(system, remoting, config);
      const auto joined = Clock::now();
      if (stay.run(stop))
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
  throw HeadNotFound("gave up after " + std::to_string(static_cast<int>(config.join_seconds))
                     + " s without a head at " + config.head_host + ":"
                     + std::to_string(config.head_port) + ": " + problem);
}

} // namespace troupe::actors
