#include "experiments/bench/simulated_nodes.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include <caf/io/all.hpp>

#include "actors/protocol/messages.pb.h"
#include "actors/supervision/node_info.hpp"

namespace troupe::experiments {
namespace {

using namespace actors;
using Clock = SimulatedLife::Clock;
using Shared = std::shared_ptr<SimulatedLife>;

constexpr std::chrono::seconds kAnswer{60};
constexpr std::chrono::seconds kRetry{1}; // as a real node does
constexpr int kJoinThreads = 48;          // per process

auto first_beat(std::chrono::milliseconds period, double phase) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(period * phase);
}

/// Stands in for a role's actor and for the handle of its process.
caf::behavior role_stand_in(caf::event_based_actor* self, const SupervisorActor& head,
                            const ProtoBytes& life) {
  self->request(head, kAnswer, hello_atom_v, life)
      .then(
          [=](const ProtoBytes&) {
            self->send(head, joined_atom_v, life, caf::actor(self), caf::actor(self),
                       std::string("tcp://127.0.0.1:9"));
          },
          [self](const caf::error& error) { self->quit(error); });
  return {[](wire_atom, const ProtoBytes&) {}, [self](stop_atom) { self->quit(); }};
}

/// Stands in for NodeActor, without processes.
caf::behavior node_stand_in(caf::event_based_actor* self, const SupervisorActor& head,
                            const Shared& shared) {
  const auto end = [=](const std::string& role, std::int32_t index) {
    const std::lock_guard lock(shared->mutex);
    if (const auto found = shared->roles.find({role, index}); found != shared->roles.end()) {
      self->send_exit(found->second, caf::exit_reason::kill);
      shared->roles.erase(found);
    }
  };
  return {[=](spawn_atom, const ProtoBytes& order) {
            const auto life = decode<wire::ProcessStart>(order).life();
            end(life.role(), life.index());
            const auto who = self->system().spawn(role_stand_in, head, encode(life));
            const std::lock_guard lock(shared->mutex);
            shared->roles[{life.role(), life.index()}] = who;
          },
          [=](stop_atom, Role role, std::int32_t index) { end(role_name(role), index); },
          [](stop_atom) { return done_atom_v; }};
}

/// Stands in for the node's own process.
caf::behavior agent_stand_in(caf::event_based_actor* self, const SupervisorActor& head,
                             const Shared& shared) {
  self->delayed_send(self, first_beat(shared->period, shared->phase), tick_atom_v);
  return {[=](tick_atom) {
            if (!shared->silent)
              self->send(head, node_atom_v, shared->name, shared->life, caf::actor(self));
            self->delayed_send(self, shared->period, tick_atom_v);
          },
          [](beat_atom) {}, [](stop_atom) {}, [](done_atom) {}};
}

/// Every role needs a core, and other roles and those of lost nodes need room, too.
NodeResources resources_of(const std::string& name, int actors) {
  CoreSet cores;
  for (int i = 0; i < 2 * actors + 2; ++i)
    cores.push_back(i);
  return {.name = name,
          .address = "127.0.0.1",
          .numa = {{.cores = std::move(cores)}},
          .memory_bytes = std::int64_t{16} << 30};
}

double now_seconds() { // on a clock shared by all processes of the host
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

template <class... Parts>
void say(const char* format, Parts... parts) {
  std::printf(format, parts...);
  std::fflush(stdout);
}

using Nodes = std::vector<std::unique_ptr<SimulatedNode>>;

/// Lets nodes [from, to) join, many at once, each with as many attempts as it needs. Returns the
/// number of attempts.
int join(Nodes& nodes, const SimulatedSeat& seat, int from, int to,
         const std::shared_ptr<const ClusterKeys>& keys) {
  std::atomic<int> next = from, tries = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < std::min(kJoinThreads, to - from); ++i)
    threads.emplace_back([&] {
      for (int at = next++; at < to; at = next++)
        while (!nodes[static_cast<std::size_t>(at)])
          try {
            ++tries;
            nodes[static_cast<std::size_t>(at)] = std::make_unique<SimulatedNode>(
                simulated_name(seat.first + at), seat.actors, seat.head_port, keys);
          } catch (const std::runtime_error& error) {
            std::fprintf(stderr, "%s: %s\n", simulated_name(seat.first + at).c_str(), error.what());
            std::this_thread::sleep_for(kRetry);
          }
    });
  threads.clear();
  return tries;
}

void play_nodes(const SimulatedSeat& seat, const sigset_t& signals,
                const std::shared_ptr<const ClusterKeys>& keys) {
  Nodes nodes(static_cast<std::size_t>(seat.count));
  say("joined %d\n", join(nodes, seat, 0, seat.count, keys));
  const auto tell = [&](int to, bool fall_silent) {
    for (int i = 0; i < to; ++i) {
      auto& node = *nodes[static_cast<std::size_t>(i)];
      if (fall_silent)
        node.fall_silent();
      for (const auto& [role, index] : node.roles())
        say("role %s %d %.6f\n", role.c_str(), index, now_seconds());
    }
    say("end\n");
  };
  bool are_silent = false;
  for (int number = 0; ::sigwait(&signals, &number) == 0 && number != SIGTERM;) {
    if (number == SIGUSR2) {
      tell(seat.count, false);
    } else if (std::exchange(are_silent, !are_silent)) {
      for (int i = 0; i < seat.silent; ++i)
        nodes[static_cast<std::size_t>(i)].reset();
      say("joined %d\n", join(nodes, seat, 0, seat.silent, keys));
    } else {
      tell(seat.silent, true);
    }
  }
  // End as if killed with open sockets, like a host that disappears. Shutting down a thousand actor
  // systems would take longer than everything else.
  std::fflush(stdout);
  std::_Exit(0);
}

/// Sends a request that the head refuses, over a separate connection. Measures the round trip
/// through the supervisor's mailbox.
double ask(caf::scoped_actor& self, const SupervisorActor& head) {
  const auto begin = Clock::now();
  self->request(head, kAnswer, hello_atom_v, encode(wire::Life()))
      .receive([](const ProtoBytes&) {}, [](const caf::error&) {});
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void play_asker(const SimulatedSeat& seat, const sigset_t& signals,
                const std::shared_ptr<const ClusterKeys>& keys) {
  SystemConfig config(true);
  caf::actor_system system(config);
  Remoting remoting(system, {.keys = keys});
  const auto head = remoting.connect<SupervisorActor>("127.0.0.1", seat.head_port);
  caf::scoped_actor self(system);
  std::vector<double> took;
  const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
  say("joined 0\n");
  for (;;) {
    took.push_back(ask(self, head));
    const int number = ::sigtimedwait(&signals, nullptr, &pause);
    if (number == SIGTERM)
      std::_Exit(0);
    if (number != SIGUSR2)
      continue;
    std::sort(took.begin(), took.end());
    const auto at = [&](double share) {
      return took[static_cast<std::size_t>(share * static_cast<double>(took.size() - 1))];
    };
    say("asked %zu %.3f %.3f %.3f\n", took.size(), at(0.5), at(0.99), took.back());
    took.clear();
  }
}

} // namespace

SimulatedNode::Config::Config() : SystemConfig(true) {
  set("scheduler.policy", caf::atom("sharing")); // its threads block, while those of other policies
                                                 // search for work
  set("scheduler.max-threads", 1);
}

SimulatedNode::SimulatedNode(std::string name, int actors, std::uint16_t head_port,
                             const std::shared_ptr<const ClusterKeys>& keys)
    : system_(config_),
      remoting_(system_, {.keys = keys}),
      shared_(std::make_shared<SimulatedLife>()) {
  shared_->life = random_life();
  shared_->phase = static_cast<double>(shared_->life % 1000) / 1000;
  shared_->name = std::move(name);
  const auto head = remoting_.connect<SupervisorActor>("127.0.0.1", head_port);
  node_ = system_.spawn(node_stand_in, head, shared_);
  agent_ = system_.spawn(agent_stand_in, head, shared_);
  const caf::scoped_actor self(system_);
  std::string problem;
  self->request(head, kAnswer, node_atom_v,
                encode(node_info(resources_of(shared_->name, actors), shared_->life)), node_,
                agent_)
      .receive([](const ProtoBytes&) {},
               [&](const caf::error& error) { problem = explain(system_, error); });
  if (problem.empty())
    return;
  for (const auto& who : {agent_, node_})
    caf::anon_send_exit(who, caf::exit_reason::kill);
  throw std::runtime_error("the head rejected the node: " + problem);
}

SimulatedNode::~SimulatedNode() {
  shared_->silent = true;
  for (const auto& who : {agent_, node_})
    caf::anon_send_exit(who, caf::exit_reason::kill);
  const std::lock_guard lock(shared_->mutex);
  for (const auto& [key, who] : shared_->roles)
    caf::anon_send_exit(who, caf::exit_reason::kill);
}

std::vector<std::pair<std::string, std::int32_t>> SimulatedNode::roles() const {
  const std::lock_guard lock(shared_->mutex);
  std::vector<std::pair<std::string, std::int32_t>> found;
  for (const auto& [key, who] : shared_->roles)
    found.push_back(key);
  return found;
}

std::string seat_text(const SimulatedSeat& seat) {
  std::string text;
  for (const int number :
       {static_cast<int>(seat.head_port), seat.first, seat.count, seat.silent, seat.actors})
    text += std::to_string(number) + ":";
  return text + seat.keys;
}

SimulatedSeat parse_simulated_seat(const std::string& text) {
  std::array<int, 5> numbers{};
  int length = 0;
  if (std::sscanf(text.c_str(), "%d:%d:%d:%d:%d:%n", &numbers[0], &numbers[1], &numbers[2],
                  &numbers[3], &numbers[4], &length)
          != 5
      || length == 0)
    throw std::invalid_argument(
        "--join is \"" + text
        + "\"; it must be PORT:FIRST:COUNT:SILENT:ACTORS:KEYS, and is for the "
          "benchmark's own processes");
  return {.head_port = static_cast<std::uint16_t>(numbers[0]),
          .first = numbers[1],
          .count = numbers[2],
          .silent = numbers[3],
          .actors = numbers[4],
          .keys = text.substr(static_cast<std::size_t>(length))};
}

std::string simulated_name(int number) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "node-%04d", number % 100'000);
  return text.data();
}

void play_simulated_seat(const SimulatedSeat& seat) {
  ::setsid(); // the kernel may share out CPU time by session; give this process, which plays other
              // hosts, its own
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGUSR1, SIGUSR2, SIGTERM})
    sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr); // for all threads started later
  std::shared_ptr<const ClusterKeys> keys;
  if (!seat.keys.empty())
    keys = std::make_shared<ClusterKeys>(read_cluster_keys(seat.keys, WallClock::now()));
  if (seat.count == 0)
    play_asker(seat, signals, keys);
  else
    play_nodes(seat, signals, keys);
}

} // namespace troupe::experiments
