#pragma once
// Parts of the supervisor, for its own sources: messages with processes and nodes. ProcessTable and
// NodeTable decide.

#include "actors/protocol/head_record.pb.h"
#include "actors/supervision/supervisor_actor.hpp"

namespace troupe::actors::supervision {

using Self = SupervisorActor::stateful_pointer<SupervisorState>;
using Phase = Process::Phase;

bool in_processes(const SupervisorState& state);

/// The entry of that life; none if it is not the current one. Throws std::invalid_argument.
std::optional<ProcessKey> key_of(const SupervisorState& state, const wire::Life& life);

/// The arguments of an actor in this process, and of one with its own process.
RoleWiring wiring_here(SupervisorState& state, const ProcessKey& key);
wire::Wiring wiring_of(const SupervisorState& state, const ProcessKey& key);

/// Whether actors of `role` have a data connection to those of `other`.
bool is_connected(Role role, Role other);
/// Tells actors that are connected to `moved` where it is now.
void announce(Self self, Role moved);

/// Frees learners that step together with a lost one from waiting for it, in their rendezvous or a
/// collective: its host may not even report that it is gone.
void free_learners(Self self, std::int32_t lost, const std::string& reason);
/// Learners that start together meet in a new rendezvous.
void open_rendezvous(Self self);

/// Gives an actor up and tells the listener; `failed`: it ended with an exception.
void lose(Self self, const ProcessKey& key, const std::string& reason, bool failed = false);

/// Waits for the processes of the head before.
void expect_processes(Self self, const wire::HeadRecord& before);
/// One of them has come.
void adopt_process(Self self, const ProcessKey& key, const wire::Life& life);
/// One of them has ended meanwhile, as far as this host's system knows.
bool process_has_ended(const SupervisorState& state, const ProcessKey& key);

/// Starts this host's node, or expects the run's nodes.
void begin_nodes(Self self);
/// Starts an actor's process on its node; without a node it waits.
void start_process(Self self, const ProcessKey& key);
/// Changes the number of environment actors and reserves their places; returns the problem, or "".
std::string scale_environments(Self self, std::int32_t count);
wire::SupervisorReport supervisor_report(const SupervisorState& state);

/// Messages of a node. join_node() throws std::invalid_argument.
caf::result<ProtoBytes> join_node(Self self, const wire::NodeInfo& info, const caf::actor& actor,
                                  const caf::actor& agent);
void take_node_beat(Self self, const std::string& name, std::uint64_t life,
                    const caf::actor& agent);
/// False: `who` was no node.
bool node_is_down(Self self, const caf::actor_addr& who, const std::string& why);
/// At every tick: places the processes once all nodes are there, and gives up silent nodes.
void watch_nodes(Self self);
/// Has all nodes end their processes, and counts nodes_left down.
void stop_nodes(Self self);

} // namespace troupe::actors::supervision
