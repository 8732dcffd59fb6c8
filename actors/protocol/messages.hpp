/// The program's only type-id block, the typed interfaces of all actors and their error codes. No
/// message holds a floating-point number, because CAF 0.17 corrupts special values on the wire:
/// numbers travel as ProtoBytes. Types marked "local" are pointers that never leave their process;
/// actors reach shards in other processes through clients (shard_endpoints.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <caf/all.hpp>

#include "replay/chunks/insertion.hpp"

namespace troupe::actors {

enum class Fault : std::uint8_t {
  bad_request = 1, // a mistake of the caller
  failed,          // an exception; the text is its message
  late,            // a deadline has passed
  stopping,        // the run is ending
  lost,            // a process or connection died
};
std::string to_string(Fault fault);

/// The kinds of actors in a run, in the order in which they start.
enum class Role : std::uint8_t { replay, parameter_server, learner, environment, evaluator };
constexpr Role kRoles[] = {Role::replay, Role::parameter_server, Role::learner, Role::environment,
                           Role::evaluator};
using ActorKey = std::pair<Role, std::int32_t>; // role, index
const char* role_name(Role role);
/// Throws std::invalid_argument listing the roles if the name is unknown.
Role role_named(const std::string& name);

/// One encoded Protobuf message of actors/protocol/messages.proto.
struct ProtoBytes {
  std::string bytes;
};

/// The flat parameters of the acting policy after `version` updates. Immutable and shared; the
/// latest version wins.
struct Parameters {
  std::uint64_t version = 0;
  std::vector<float> values;
};
using ParametersPtr = std::shared_ptr<const Parameters>; // local

/// A shard's answer to a sample request.
struct Sample {
  std::vector<replay::Item> items;
};
using SamplePtr = std::shared_ptr<const Sample>; // local

/// New priorities for items of one shard.
struct Priorities {
  std::vector<std::uint64_t> keys;
  std::vector<double> values;
};
using PrioritiesPtr = std::shared_ptr<const Priorities>; // local

struct BatchBuffer;
using BatchPtr = std::shared_ptr<BatchBuffer>; // local
using InsertionPtr = replay::InsertionPtr;     // local

struct Update; // a report of the metrics actor to the run (run/metrics_actor.hpp)
using UpdatePtr = std::shared_ptr<const Update>; // local

} // namespace troupe::actors

// clang-format off
CAF_BEGIN_TYPE_ID_BLOCK(troupe, caf::first_custom_type_id)
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::ProtoBytes))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::Fault))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::Role))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::ParametersPtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::SamplePtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::BatchPtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::InsertionPtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::UpdatePtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::PrioritiesPtr))
  CAF_ADD_ATOM(troupe, troupe::actors, insert_atom, "insert")
  CAF_ADD_ATOM(troupe, troupe::actors, sample_atom, "sample")
  CAF_ADD_ATOM(troupe, troupe::actors, report_atom, "report")
  CAF_ADD_ATOM(troupe, troupe::actors, save_atom, "save")
  CAF_ADD_ATOM(troupe, troupe::actors, load_atom, "load")
  CAF_ADD_ATOM(troupe, troupe::actors, open_atom, "open")
  CAF_ADD_ATOM(troupe, troupe::actors, grant_atom, "grant")
  CAF_ADD_ATOM(troupe, troupe::actors, flush_atom, "flush")
  CAF_ADD_ATOM(troupe, troupe::actors, step_atom, "step")
  CAF_ADD_ATOM(troupe, troupe::actors, batch_atom, "batch")
  CAF_ADD_ATOM(troupe, troupe::actors, publish_atom, "publish")
  CAF_ADD_ATOM(troupe, troupe::actors, subscribe_atom, "subscribe")
  CAF_ADD_ATOM(troupe, troupe::actors, evaluate_atom, "evaluate")
  CAF_ADD_ATOM(troupe, troupe::actors, update_atom, "update")
  CAF_ADD_ATOM(troupe, troupe::actors, hello_atom, "hello")
  CAF_ADD_ATOM(troupe, troupe::actors, joined_atom, "joined")
  CAF_ADD_ATOM(troupe, troupe::actors, started_atom, "started")
  CAF_ADD_ATOM(troupe, troupe::actors, spawn_atom, "spawn")
  CAF_ADD_ATOM(troupe, troupe::actors, lost_atom, "lost")
  CAF_ADD_ATOM(troupe, troupe::actors, stop_atom, "stop")
  CAF_ADD_ATOM(troupe, troupe::actors, done_atom, "done")
  CAF_ADD_ATOM(troupe, troupe::actors, tick_atom, "tick")
  CAF_ADD_ATOM(troupe, troupe::actors, limit_atom, "limit")
  CAF_ADD_ATOM(troupe, troupe::actors, written_atom, "written")
  CAF_ADD_ATOM(troupe, troupe::actors, beat_atom, "beat")
  CAF_ADD_ATOM(troupe, troupe::actors, wire_atom, "wire")
  CAF_ADD_ATOM(troupe, troupe::actors, answer_atom, "answer")
  CAF_ADD_ATOM(troupe, troupe::actors, node_atom, "node")
  CAF_ADD_ATOM(troupe, troupe::actors, control_atom, "control")
  CAF_ADD_ATOM(troupe, troupe::actors, scale_atom, "scale")
  CAF_ADD_ATOM(troupe, troupe::actors, leave_atom, "leave")
  CAF_ADD_ATOM(troupe, troupe::actors, store_atom, "store")
  CAF_ADD_ATOM(troupe, troupe::actors, task_atom, "task")
  CAF_ADD_ATOM(troupe, troupe::actors, measure_atom, "measure")
  CAF_ADD_ATOM(troupe, troupe::actors, spans_atom, "spans")
  CAF_ADD_ATOM(troupe, troupe::actors, picture_atom, "picture")
  CAF_ADD_ATOM(troupe, troupe::actors, refused_atom, "refused")
CAF_END_TYPE_ID_BLOCK(troupe)
// clang-format on

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::ParametersPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::SamplePtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::BatchPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::InsertionPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::UpdatePtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::PrioritiesPtr)
CAF_ERROR_CODE_ENUM(troupe::actors::Fault, "fault")

namespace troupe::actors {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ProtoBytes& x) {
  return f(caf::meta::type_name("ProtoBytes"), x.bytes);
}

template <class Message>
ProtoBytes encode(const Message& message) {
  return ProtoBytes{message.SerializeAsString()};
}

/// Throws std::runtime_error if the bytes cannot be parsed as a Message.
template <class Message>
Message decode(const ProtoBytes& encoded) {
  Message message;
  if (!message.ParseFromString(encoded.bytes))
    throw std::runtime_error("an actor got " + std::to_string(encoded.bytes.size())
                             + " bytes that are not a " + message.GetTypeName());
  return message;
}

/// Runs one shard of the table. Answers a request once the rate limiter admits it.
using ReplayActor = caf::typed_actor<
    caf::replies_to<insert_atom, InsertionPtr>::with<done_atom>,
    // replica, number of the request since the replica started, rows
    caf::replies_to<sample_atom, std::uint32_t, std::uint64_t, std::uint32_t>::with<SamplePtr>,
    // replica, number of the sample that these priorities answer
    caf::replies_to<update_atom, std::uint32_t, std::uint64_t, PrioritiesPtr>::with<done_atom>,
    // a replay Limiter, which replaces the rate limiter and starts at drift 0
    caf::replies_to<limit_atom, ProtoBytes>::with<done_atom>,
    caf::replies_to<spans_atom, ProtoBytes>::with<ProtoBytes>, // SpansOrder -> SpansPart
    caf::replies_to<report_atom>::with<ProtoBytes>,            // ShardReport
    caf::replies_to<open_atom, bool>::with<done_atom>, // true: samples no longer wait for the ratio
    // folder of the checkpoint to write, folder of the previous one or ""; answered when the state
    // is captured, while writing continues in the background
    caf::replies_to<save_atom, std::string, std::string>::with<done_atom>,
    caf::replies_to<written_atom>::with<done_atom>, // answered when the checkpoint is written
    // returns how the saved configuration differs from the current one; "" if it does not
    caf::replies_to<load_atom, std::string>::with<std::string>,
    caf::reacts_to<written_atom, std::string>,      // to itself: the problem, or ""
    caf::reacts_to<save_atom>,                      // to itself: a snapshot is due
    caf::replies_to<hello_atom>::with<std::string>, // returns its endpoint for other processes
    caf::reacts_to<tick_atom>>;                     // to itself

/// Holds the newest parameters and sends them to subscribers.
using ParameterActor = caf::typed_actor<caf::reacts_to<publish_atom, ParametersPtr>,
                                        caf::reacts_to<subscribe_atom, caf::actor>>;

/// Steps environments while it has granted steps.
using EnvironmentActor = caf::typed_actor<
    caf::reacts_to<publish_atom, ParametersPtr>,
    // agent steps per environment since the actor was started or restored, least parameter version
    // for steps of the policy, whether to hold insertions until the next flush
    caf::replies_to<grant_atom, std::int64_t, std::uint64_t, bool>::with<done_atom>,
    // the run was scaled: its agent steps so far, its new number of environments
    caf::reacts_to<scale_atom, std::int64_t, std::int64_t>,
    caf::reacts_to<wire_atom, std::uint32_t, std::string>, // a shard's new endpoint
    caf::reacts_to<task_atom, ProtoBytes>, // TaskChange, for episodes that begin from now on
    caf::reacts_to<step_atom>,             // to itself: play a few steps, then read the mailbox
    // answered when all insertions are acknowledged: agent steps per environment so far
    caf::replies_to<flush_atom>::with<std::int64_t>,
    caf::replies_to<report_atom>::with<ProtoBytes>,            // EnvironmentReport
    caf::replies_to<spans_atom, ProtoBytes>::with<ProtoBytes>, // SpansOrder -> SpansPart
    // Distributions of the actions since the last request
    caf::replies_to<measure_atom>::with<ProtoBytes>,
    caf::replies_to<picture_atom, ProtoBytes>::with<ProtoBytes>, // PictureOrder -> LivePicture
    // path; allowed only when nothing is pending
    caf::replies_to<save_atom, std::string>::with<done_atom>,
    caf::replies_to<load_atom, std::string>::with<done_atom>>;

/// Gathers batches ahead of its learner, at most as many as granted.
using PrefetchActor = caf::typed_actor<
    caf::reacts_to<grant_atom, std::int64_t>,
    caf::reacts_to<batch_atom, BatchPtr>,                  // a used buffer, with priorities
    caf::reacts_to<wire_atom, std::uint32_t, std::string>, // a shard's new endpoint
    caf::reacts_to<tick_atom>, // to itself: check for samples from other processes
    caf::replies_to<flush_atom>::with<done_atom>, // answered when the shards have all priorities
    // what it waits for, or ""; number of full batches that the learner has not returned
    caf::replies_to<report_atom>::with<std::string, std::int64_t>>;

/// For a flush of a learner: all updates that it was granted.
constexpr std::int64_t kAllGranted = std::numeric_limits<std::int64_t>::max();

/// Runs one replica.
using LearnerActor = caf::typed_actor<
    caf::reacts_to<grant_atom, std::int64_t>,              // total number of updates it may make
    caf::reacts_to<batch_atom, BatchPtr>,                  // a full buffer from its prefetcher
    caf::reacts_to<wire_atom, std::uint32_t, std::string>, // passed on to its prefetcher
    // sets the grant to this number of updates, if it has not made more; answered with their
    // number when all granted updates are made and published
    caf::replies_to<flush_atom, std::int64_t>::with<std::int64_t>,
    // returns the LearnerEvaluation of its replica, computed together with all other replicas
    caf::replies_to<evaluate_atom>::with<ProtoBytes>,
    // ReturnPoints -> LearnerEvaluation, which compares the critic with the returns
    caf::replies_to<evaluate_atom, ProtoBytes>::with<ProtoBytes>,
    caf::reacts_to<step_atom>,                      // to itself: make one update on its own data
    caf::replies_to<report_atom>::with<ProtoBytes>, // LearnerReport
    caf::replies_to<spans_atom, ProtoBytes>::with<ProtoBytes>, // SpansOrder -> SpansPart
    // returns Distributions of the current parameters
    caf::replies_to<measure_atom>::with<ProtoBytes>,
    // folder; answered when the state is captured, while writing continues in the background
    caf::replies_to<save_atom, std::string>::with<done_atom>,
    caf::replies_to<written_atom>::with<done_atom>, // answered when the checkpoint is written
    // writes a snapshot now, for other learners to start from; returns its number of updates
    caf::replies_to<save_atom>::with<std::int64_t>,
    caf::replies_to<load_atom, std::string>::with<done_atom>,
    caf::reacts_to<written_atom, std::string>, // to itself: the problem, or ""
    caf::reacts_to<lost_atom>>; // to itself: no learner requested this stranded one's state in time

using EvaluatorActor =
    caf::typed_actor<caf::reacts_to<publish_atom, ParametersPtr>,
                     caf::replies_to<evaluate_atom, ProtoBytes>::with<ProtoBytes>,
                     caf::replies_to<report_atom>::with<ProtoBytes>, // ProcessTime
                     caf::reacts_to<step_atom>>;

/// Runs one shard of the parameters of learners that push gradients to servers. Gradients and
/// parameters travel over its host's socket, not through its mailbox.
using ParameterServerActor =
    caf::typed_actor<caf::replies_to<hello_atom>::with<std::string>, // its endpoint for learners
                     caf::replies_to<report_atom>::with<ProtoBytes>, // ParameterServerReport
                     caf::replies_to<save_atom, std::string>::with<done_atom>, // folder
                     // folder; before learners connect
                     caf::replies_to<load_atom, std::string>::with<done_atom>>;

/// Polls the reports of all actors, adds them up and sends the result to its listener as
/// (update_atom, UpdatePtr) ten times a second.
using MetricsActor = caf::typed_actor<
    // role, index, actor to poll
    caf::reacts_to<subscribe_atom, Role, std::int32_t, caf::actor>,
    caf::reacts_to<grant_atom, bool>, // whether time counts as training from now on
    // role, index of an actor that need not report
    caf::reacts_to<lost_atom, Role, std::int32_t>,
    caf::reacts_to<load_atom, ProtoBytes>, // MetricsRecord of the previous head
    // answered after every actor has reported again; the listener gets the same update before the
    // answer, because its episodes must not be lost if the request has ended meanwhile
    caf::replies_to<report_atom>::with<UpdatePtr>, caf::reacts_to<tick_atom>,
    caf::reacts_to<step_atom>>; // to itself: poll the shards

/// Writes one checkpoint at a time: each actor's part, then the manifest, then the rename that
/// makes it complete.
using CheckpointerActor = caf::typed_actor<
    caf::reacts_to<subscribe_atom, Role, std::int32_t, caf::actor>,
    // a checkpoint that still needs this actor fails
    caf::reacts_to<lost_atom, Role, std::int32_t>,
    caf::reacts_to<load_atom, std::string>, // the checkpoint from which the run continues
    // runs folder, RunState; answered when all state is captured and the run may continue
    caf::replies_to<save_atom, std::string, ProtoBytes>::with<done_atom>,
    caf::replies_to<written_atom>::with<std::string>>; // returns its path when it is complete

/// The store in which learners of separate processes find each other.
using RendezvousActor = caf::typed_actor<
    caf::replies_to<store_atom, ProtoBytes>::with<ProtoBytes>, // StoreRequest -> StoreAnswer
    caf::reacts_to<tick_atom, std::uint64_t>>; // to itself: check for requests past their deadline

/// The supervisor as the learners' store: Life of the requesting process, StoreRequest ->
/// StoreAnswer.
using RendezvousPort =
    caf::typed_actor<caf::replies_to<store_atom, ProtoBytes, ProtoBytes>::with<ProtoBytes>>;

/// Starts the actors of a run in this or other processes, monitors them and sends its listener
/// - (started_atom, role, index, actor, endpoint, process id), with "" and 0 where it has none,
/// - (lost_atom, role, index, reason, whether it may be restarted) and
/// - (node_atom, name, what happened to a lost node).
///
/// Each message from a process names its Life; messages from an earlier Life are refused.
using SupervisorActor = caf::typed_actor<
    caf::reacts_to<spawn_atom, Role, std::int32_t, std::uint64_t,
                   std::int64_t>, // role, index, incarnation, earlier steps
    // stops that actor, which then does not count as lost
    caf::reacts_to<stop_atom, Role, std::int32_t>,
    caf::replies_to<hello_atom, ProtoBytes>::with<ProtoBytes>, // from a process: Life -> Wiring
    // Life, its actor, the process's own handle, its endpoint; the process gets (wire_atom, Wiring)
    // when an endpoint has changed, and (stop_atom) when its Life is over
    caf::reacts_to<joined_atom, ProtoBytes, caf::actor, caf::actor, std::string>,
    // Life of a learner, StoreRequest -> StoreAnswer; the store of the learners that started
    // together
    caf::replies_to<store_atom, ProtoBytes, ProtoBytes>::with<ProtoBytes>,
    // from a node: Life of a process that ended or is frozen, how it ended
    caf::reacts_to<lost_atom, ProtoBytes, std::string>,
    // from a host: NodeInfo, its NodeActor, its own handle -> NodeWelcome; that handle gets
    // (done_atom) when the run is over
    caf::replies_to<node_atom, ProtoBytes, caf::actor, caf::actor>::with<ProtoBytes>,
    // a node's heartbeat: its name and life, its own handle, which gets (beat_atom), or (stop_atom)
    // when that life is over
    caf::reacts_to<node_atom, std::string, std::uint64_t, caf::actor>,
    // stops that actor, which then does not count as lost; answered when its process has ended
    caf::replies_to<leave_atom, Role, std::int32_t>::with<done_atom>,
    // the new number of environment actors; returns the problem, or ""
    caf::replies_to<scale_atom, std::int32_t>::with<std::string>,
    // ControlRequest of an operator -> RunStatus or ControlDone
    caf::replies_to<control_atom, ProtoBytes>::with<ProtoBytes>,
    caf::reacts_to<tick_atom>,                    // to itself: look for silent nodes
    caf::replies_to<stop_atom>::with<done_atom>>; // stops all of them

/// Answers the run's operators: status requests by itself, others through the head, which gets
/// (stop_atom) or (control_atom, number, ControlRequest, RestartOrder).
using ControlActor =
    caf::typed_actor<caf::reacts_to<update_atom, UpdatePtr>,  // from the head, as they arrive
                     caf::reacts_to<report_atom, ProtoBytes>, // HeadReport
                     // ControlRequest, SupervisorReport -> RunStatus or ControlDone
                     caf::replies_to<control_atom, ProtoBytes, ProtoBytes>::with<ProtoBytes>,
                     // number of a request, the problem or "", ControlDone
                     caf::reacts_to<answer_atom, std::uint64_t, std::string, ProtoBytes>>;

/// An actor that an embedding program adds to a run (RunConfig::companion). It gets a first report,
/// without episodes, when the run starts, and another one whenever episodes have ended and it has
/// answered the previous report. A deterministic run waits for each answer.
using CompanionActor =
    // EpisodesReport -> TaskChange
    caf::typed_actor<caf::replies_to<report_atom, ProtoBytes>::with<ProtoBytes>>;

/// Starts, monitors and stops the processes of one host, and reports to its supervisor how each
/// ended.
using NodeActor = caf::typed_actor<
    // ProcessStart
    caf::reacts_to<spawn_atom, ProtoBytes>,
    // Life of a process on this host that the previous head had started: takes it over
    caf::reacts_to<joined_atom, ProtoBytes>,
    // the SupervisorActor of a new head, which gets all further reports -> NodeInfo that lists the
    // processes on this host
    caf::replies_to<joined_atom, caf::actor>::with<ProtoBytes>,
    caf::reacts_to<stop_atom, Role, std::int32_t>, // kills that process
    caf::reacts_to<tick_atom>,                     // to itself: look for ended processes
    caf::replies_to<stop_atom>::with<done_atom>>;  // answered when all have ended

namespace detail {
template <class T>
struct HoldsFloat : std::is_floating_point<T> {};
template <template <class...> class List, class... Ts>
struct HoldsFloat<List<Ts...>> : std::disjunction<HoldsFloat<Ts>...> {};
template <class... Actors>
constexpr bool kNoFloats = (!HoldsFloat<typename Actors::signatures>::value && ...);
} // namespace detail

static_assert(
    detail::kNoFloats<ReplayActor, ParameterActor, EnvironmentActor, PrefetchActor, LearnerActor,
                      EvaluatorActor, ParameterServerActor, MetricsActor, CheckpointerActor,
                      SupervisorActor, ControlActor, NodeActor, CompanionActor>,
    "a message holds a floating-point number: encode it (CAF corrupts NaN and infinity)");

} // namespace troupe::actors
