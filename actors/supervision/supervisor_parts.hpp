#pragma once
// Parts of the supervisor, for its own sources: messages with processes and nodes. ProcessTable and
// NodeTable make the decisions.

#include "actors/protocol/head_record.pb.h"
#include "actors/supervision/supervisor_actor.hpp"

namespace troupe::actors::supervision {

using Self = SupervisorActor::stateful_pointer<SupervisorState>;
using Phase = Process::Phase;

bool in_processes(const SupervisorState& state);

/// Returns the entry of that life, or nothing if it is not the current one. Throws
/// std::invalid_argument.
std::optional<ActorKey> key_of(const SupervisorState& state, const wire::Life& life);

/// The connections of an actor in this process, and of an actor with its own process.
RoleWiring wiring_here(SupervisorState& state, const ActorKey& key);
wire::Wiring wiring_of(const SupervisorState& state, const ActorKey& key);

/// Whether actors of `role` have a data connection to those of `other`.
bool is_connected(Role role, Role other);
/// Sends the new endpoint of `moved` to the actors that are connected to it.
void announce(Self self, Role moved);

/// Ends the wait of learners for a lost learner that steps with them, in their rendezvous or a
/// collective: its host may never report that it is gone.
void free_learners(Self self, std::int32_t lost, const std::string& reason);
/// Opens a new rendezvous for learners that start together.
void open_rendezvous(Self self);

/// Gives an actor up and notifies the listener; `failed`: it ended with an exception.
void lose(Self self, const ActorKey& key, const std::string& reason, bool failed = false);

/// Waits for the processes of the previous head.
void expect_processes(Self self, const wire::HeadRecord& before);
/// Takes over one of these processes when it has joined.
void adopt_process(Self self, const ActorKey& key, const wire::Life& life);
/// Whether one of these processes has ended meanwhile, as far as this host's kernel knows.
bool process_has_ended(const SupervisorState& state, const ActorKey& key);

/// Starts this host's node actor, or expects the run's nodes.
void begin_nodes(Self self);
/// Starts an actor's process on its node. Without a node the actor waits.
void start_process(Self self, const ActorKey& key);
/// Changes the number of environment actors and reserves their places; returns the problem, or "".
std::string scale_environments(Self self, std::int32_t count);
wire::SupervisorReport supervisor_report(const SupervisorState& state);

/// Handle the messages of a node. join_node() throws std::invalid_argument.
caf::result<ProtoBytes> join_node(Self self, const wire::NodeInfo& info, const caf::actor& actor,
                                  const caf::actor& agent);
void take_node_beat(Self self, const std::string& name, std::uint64_t life,
                    const caf::actor& agent);
/// Returns false if `who` is not a node.
bool node_is_down(Self self, const caf::actor_addr& who, const std::string& why);
/// Called at every tick: places the processes once all nodes have joined, and gives up silent
/// nodes.
void watch_nodes(Self self);
/// Asks all nodes to end their processes, and counts nodes_left down as they do.
void stop_nodes(Self self);

} // namespace troupe::actors::supervision
