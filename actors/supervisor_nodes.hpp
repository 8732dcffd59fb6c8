#pragma once
// The supervisor's parts for what actors are told of each other, and for processes and the nodes
// they are on; for supervisor_actor.cpp alone.

#include "actors/supervisor_actor.hpp"

namespace troupe::actors::supervision {

using Self = SupervisorActor::stateful_pointer<SupervisorState>;
using Key = std::pair<Role, std::int32_t>;
using Phase = SupervisorState::Phase;

std::int64_t ticks(double seconds);
std::string number(double value); // "15", "0.5"
wire::Life life_of(const SupervisorState& state, const Key& key);

bool in_processes(const SupervisorState& state);

/// What an actor in this process is built from.
RoleWiring wiring_here(SupervisorState& state, const Key& key);

/// What a process is told.
wire::Wiring wiring_of(SupervisorState& state, const Key& key);

/// Whether the one has a connection of its own to the other.
bool is_connected(Role role, Role other);

/// Those that are connected to a shard or to the learner learn where it is now.
void tell_others(Self self, Role moved);

/// Learners that stepped together with one that is gone wait for it no longer, in their rendezvous
/// or whatever collective they are: its host may not even say that it is gone.
void free_learners(Self self, std::int32_t gone, const std::string& reason);

/// Learners that begin together meet in a store of their own.
void open_rendezvous(Self self);

/// Gives a child up and tells the listener; `failed`: it ended with an exception.
void lost(Self self, const Key& key, std::string reason, bool failed = false);

/// This process's own node, or those that are expected.
void begin_nodes(Self self);

/// Starts a child's process on the node that it is placed on; where there is none yet it waits.
void start_process(Self self, const Key& key);

/// So many environment actors from now on; gives what is in the way, or "". New ones have a place
/// then.
std::string scale_environments(Self self, std::int32_t count);

/// What is known of nodes and processes.
wire::SupervisorReport supervisor_report(const SupervisorState& state);

/// Where the learners are: those of one host need no network.
void add_learner_places(const SupervisorState& state, wire::Wiring& wiring);

/// What a node says. join_node() throws std::invalid_argument.
caf::result<Encoded> join_node(Self self, const wire::NodeInfo& info, const caf::actor& actor,
                               const caf::actor& agent);
void take_node_beat(Self self, const std::string& name, std::uint64_t life,
                    const caf::actor& agent);
/// False: it was no node.
bool node_is_down(Self self, const caf::actor_addr& who, const std::string& why);

/// Every tick: places everybody once all nodes are there, and gives up those that are silent.
void watch_nodes(Self self);

/// Has all of them end their processes, and counts nodes_left down.
void stop_nodes(Self self);

} // namespace troupe::actors::supervision
