#include "actors/supervision/node_actor.hpp"

#include <csignal>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actors/protocol/system.hpp"
#include "actors/supervision/process_table.hpp"

namespace troupe::actors {

const char* NodeState::name = "node";

namespace {

using NodeSelf = NodeActor::stateful_pointer<NodeState>;
constexpr std::chrono::milliseconds kNodePeriod{200};
constexpr int kNodePatience = 50; // ticks; a process has 10 s to leave by itself
constexpr int kLook = 5;          // ticks between two looks for frozen processes: 1 s

void tell(NodeSelf self, const wire::Life& life, const std::string& how) {
  self->send(self->state.options.supervisor, lost_atom_v, encode(life), how);
}

void kill_process(NodeState& state, const ActorKey& key) {
  const auto at = state.processes.find(key);
  if (at == state.processes.end())
    return;
  if (const auto& adopted = at->second.adopted) {
    ::syscall(SYS_pidfd_send_signal, adopted->number(), SIGKILL, nullptr, 0);
  } else {
    ::kill(at->second.id, SIGKILL);
    state.leaving.push_back(at->second.id);
  }
  state.processes.erase(at);
}

/// Adopts a process. It has just sent a message, so its process id is still its own.
void adopt(NodeSelf self, const wire::Life& life) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, life.process(), 0));
  if (handle < 0)
    return tell(self, life, "its process ended");
  self->state.processes[{role_named(life.role()), life.index()}] = {
      .id = life.process(),
      .life = life,
      .adopted = std::make_shared<const env::wire::Descriptor>(handle)};
}

bool has_ended(const env::wire::Descriptor& process) {
  pollfd look{.fd = process.number(), .events = POLLIN, .revents = 0};
  return ::poll(&look, 1, 0) > 0;
}

void start(NodeSelf self, const wire::ProcessStart& told) {
  const wire::Life& life = told.life();
  const std::pair key{role_named(life.role()), life.index()};
  self->state.options.lost_seconds = told.lost_seconds();
  kill_process(self->state, key); // an earlier life
  const int process = self->state.options.start_process(
      {.role = life.role(),
       .index = life.index(),
       .epoch = life.epoch(),
       .incarnation = life.incarnation(),
       .head_host = self->state.options.head_host,
       .head_port = static_cast<std::uint16_t>(told.head_port()),
       .address = told.address(),
       .config = told.config(),
       .cores = told.cores().empty() ? CoreSet() : parse_core_set(told.cores()),
       .gpus = {told.gpus().begin(), told.gpus().end()}});
  self->state.processes[key] = {.id = process,
                                .life = life,
                                .cores = told.cores(),
                                .gpus = {told.gpus().begin(), told.gpus().end()}};
}

wire::NodeInfo living(const NodeState& state) {
  wire::NodeInfo told;
  for (const auto& [key, process] : state.processes) {
    auto& one = *told.add_living();
    *one.mutable_life() = process.life;
    one.set_cores(process.cores);
    one.mutable_gpus()->Assign(process.gpus.begin(), process.gpus.end());
  }
  return told;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return "its process was killed by signal " + std::to_string(WTERMSIG(status));
  return "its process ended with exit code " + std::to_string(WEXITSTATUS(status));
}

/// Collects ended processes. Reports each one that was not asked to stop.
void reap(NodeSelf self) {
  auto& state = self->state;
  std::erase_if(state.leaving,
                [](int process) { return ::waitpid(process, nullptr, WNOHANG) != 0; });
  std::erase_if(state.processes, [&](const auto& entry) {
    if (const auto& adopted = entry.second.adopted) {
      if (!has_ended(*adopted))
        return false;
      if (state.patience < 0)
        tell(self, entry.second.life, "its process ended");
      return true;
    }
    int status = 0;
    if (::waitpid(entry.second.id, &status, WNOHANG) != entry.second.id)
      return false;
    if (state.patience < 0)
      tell(self, entry.second.life, how_it_ended(status));
    return true;
  });
}

/// Whether a signal or a debugger has stopped a process.
bool is_stopped(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto name = text.rfind(") "); // the name before it may contain anything
  return name != std::string::npos && text.find_first_of("Tt", name) == name + 2;
}

/// Reports the processes that have been stopped for lost_seconds, until the supervisor has them
/// killed.
void look_for_frozen(NodeSelf self) {
  const double patience = self->state.options.lost_seconds;
  for (auto& [key, process] : self->state.processes) {
    process.stopped = is_stopped(process.id) ? process.stopped + 1 : 0;
    if (process.stopped - 1 >= patience) // n looks prove n - 1 seconds
      tell(self, process.life, "its process was frozen for " + number(patience) + " s");
  }
}

void tick(NodeSelf self) {
  auto& state = self->state;
  reap(self);
  if (++state.ticks % kLook == 0 && state.patience < 0)
    look_for_frozen(self);
  if (state.patience > 0 && --state.patience == 0)
    while (!state.processes.empty())
      kill_process(state, state.processes.begin()->first);
  if (state.patience >= 0 && state.processes.empty() && state.leaving.empty())
    for (auto& promise : std::exchange(state.stoppers, {}))
      promise.deliver(done_atom_v);
  self->delayed_send(self, kNodePeriod, tick_atom_v);
}

} // namespace

NodeActor::behavior_type node_actor(NodeSelf self, NodeOptions options) {
  self->state.options = std::move(options);
  self->set_exit_handler([self](caf::exit_msg& why) { // CAF drops a dead actor's promises
    for (auto& promise : std::exchange(self->state.stoppers, {}))
      promise.deliver(done_atom_v);
    self->quit(std::move(why.reason));
  });
  self->delayed_send(self, kNodePeriod, tick_atom_v);
  return {
      [self](spawn_atom, const ProtoBytes& order) {
        wire::ProcessStart told;
        try {
          told = decode<wire::ProcessStart>(order);
          start(self, told);
        } catch (const std::exception& e) {
          tell(self, told.life(), e.what());
        }
      },
      [self](joined_atom, const ProtoBytes& life) {
        try {
          adopt(self, decode<wire::Life>(life));
        } catch (const std::exception&) { // unknown role
        }
      },
      [self](joined_atom, const caf::actor& head) {
        reap(self); // do not list processes that have ended
        self->state.options.supervisor = caf::actor_cast<SupervisorActor>(head);
        return encode(living(self->state));
      },
      [self](stop_atom, Role role, std::int32_t index) {
        kill_process(self->state, {role, index});
      },
      [self](tick_atom) { tick(self); },
      [self](stop_atom) -> caf::result<done_atom> {
        auto promise = self->make_response_promise<done_atom>();
        self->state.stoppers.push_back(promise);
        self->state.patience = kNodePatience;
        return promise;
      },
  };
}

} // namespace troupe::actors
