/// The one type-id block of the program, the typed interfaces of all actors and the errors they
/// answer with. No message holds a floating-point number (CAF 0.17 corrupts special values on the
/// wire): numbers travel as ProtoBytes. Types marked local are pointers that never
/// leave their process; between processes shards have clients (shard_endpoints.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <caf/all.hpp>

#include "replay/chunks/insertion.hpp"

namespace troupe::actors {

enum class Fault : std::uint8_t {
  bad_request = 1, // the caller's mistake
  failed,          // an exception; the text says what
  late,            // a deadline passed
  stopping,        // the run is ending
  lost,            // a process or connection died
};
std::string to_string(Fault fault);

/// One encoded Protobuf message of actors/protocol/messages.proto.
struct ProtoBytes {
  std::string bytes;
};

/// The acting policy, flat, as it was after `version` updates. Immutable and shared; latest wins.
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

struct Update; // a report of the run to its owner: a callback's arguments
using UpdatePtr = std::shared_ptr<const Update>; // local

} // namespace troupe::actors

// clang-format off
CAF_BEGIN_TYPE_ID_BLOCK(troupe, caf::first_custom_type_id)
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::ProtoBytes))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::Fault))
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

/// Throws std::runtime_error if the bytes are not such a message.
template <class Message>
Message decode(const ProtoBytes& encoded) {
  Message message;
  if (!message.ParseFromString(encoded.bytes))
    throw std::runtime_error("an actor got " + std::to_string(encoded.bytes.size())
                             + " bytes that are no " + message.GetTypeName());
  return message;
}

/// A table shard. Answers requests when its rate limiter allows them.
using ReplayActor = caf::typed_actor<
    caf::replies_to<insert_atom, InsertionPtr>::with<done_atom>,
    // replica, number of the request since the replica's start, rows
    caf::replies_to<sample_atom, std::uint32_t, std::uint64_t, std::uint32_t>::with<SamplePtr>,
    // replica, number of the sample that they answer
    caf::replies_to<update_atom, std::uint32_t, std::uint64_t, PrioritiesPtr>::with<done_atom>,
    // replay's Limiter: replaces the rate limiter, at drift 0
    caf::replies_to<limit_atom, ProtoBytes>::with<done_atom>,
    caf::replies_to<spans_atom, ProtoBytes>::with<ProtoBytes>, // SpansOrder -> SpansPart
    caf::replies_to<report_atom>::with<ProtoBytes>,            // ShardReport
    caf::replies_to<open_atom, bool>::with<done_atom>, // true: samples no longer wait for the ratio
    // checkpoint to write, and the previous one or "": answered when everything is captured; the
    // shard works while it is written
    caf::replies_to<save_atom, std::string, std::string>::with<done_atom>,
    caf::replies_to<written_atom>::with<done_atom>, // when it is written
    // how the saved configuration differs from the current one; "" if it does not
    caf::replies_to<load_atom, std::string>::with<std::string>,
    caf::reacts_to<written_atom, std::string>,      // to itself: what failed, or ""
    caf::reacts_to<save_atom>,                      // to itself: a snapshot is due
    caf::replies_to<hello_atom>::with<std::string>, // its endpoint for other processes
    caf::reacts_to<tick_atom>>;                     // to itself

/// Holds the newest parameters and sends them to subscribers.
using ParameterActor = caf::typed_actor<caf::reacts_to<publish_atom, ParametersPtr>,
                                        caf::reacts_to<subscribe_atom, caf::actor>>;

/// Plays environments while it has steps granted.
using EnvironmentActor = caf::typed_actor<
    caf::reacts_to<publish_atom, ParametersPtr>,
    // agent steps per environment since it was started or restored, least parameter version for
    // steps with the policy, hold insertions until flush
    caf::replies_to<grant_atom, std::int64_t, std::uint64_t, bool>::with<done_atom>,
    // the run was scaled: its agent steps so far, its environments from now on
    caf::reacts_to<scale_atom, std::int64_t, std::int64_t>,
    caf::reacts_to<wire_atom, std::uint32_t, std::string>, // a shard's new endpoint
    caf::reacts_to<task_atom, ProtoBytes>, // TaskChange: for episodes that begin from now on
    caf::reacts_to<step_atom>,             // to itself: play a few steps, then look at the mailbox
    caf::replies_to<flush_atom>::with<std::int64_t>, // all insertions acknowledged; agent steps per
                                                     // environment so far
    caf::replies_to<report_atom>::with<ProtoBytes>,  // EnvironmentReport
    caf::replies_to<spans_atom, ProtoBytes>::with<ProtoBytes>, // SpansOrder -> SpansPart
    caf::replies_to<measure_atom>::with<ProtoBytes>, // Distributions of actions since the last time
    caf::replies_to<picture_atom, ProtoBytes>::with<ProtoBytes>, // PictureOrder -> LivePicture
    caf::replies_to<save_atom, std::string>::with<done_atom>, // path; only when nothing is pending
    caf::replies_to<load_atom, std::string>::with<done_atom>>;

/// Gathers batches ahead of its learner, never more than granted.
using PrefetchActor =
    caf::typed_actor<caf::reacts_to<grant_atom, std::int64_t>,
                     caf::reacts_to<batch_atom, BatchPtr>, // a buffer comes back, with priorities
                     caf::reacts_to<wire_atom, std::uint32_t, std::string>, // a shard's new
                                                                            // endpoint
                     caf::reacts_to<tick_atom>, // to itself: look for samples of other processes
                     caf::replies_to<flush_atom>::with<done_atom>,     // the shards have them all
                     caf::replies_to<report_atom>::with<std::string>>; // what it waits for, or ""

/// One replica.
using LearnerActor =
    caf::typed_actor<caf::reacts_to<grant_atom, std::int64_t>, // total updates it may have made
                     caf::reacts_to<batch_atom, BatchPtr>,     // from its prefetcher
                     caf::reacts_to<wire_atom, std::uint32_t, std::string>, // for its prefetcher
                     caf::replies_to<flush_atom>::with<std::int64_t>, // when all granted updates
                                                                      // are made and published:
                                                                      // their number
                     // what its replica evaluates to, with all the others: LearnerEvaluation
                     caf::replies_to<evaluate_atom>::with<ProtoBytes>,
                     // ReturnPoints -> what its critic says of them: LearnerEvaluation
                     caf::replies_to<evaluate_atom, ProtoBytes>::with<ProtoBytes>,
                     caf::reacts_to<step_atom>, // to itself: one update on data of its own
                     caf::replies_to<report_atom>::with<ProtoBytes>,            // LearnerReport
                     caf::replies_to<spans_atom, ProtoBytes>::with<ProtoBytes>, // SpansOrder ->
                                                                                // SpansPart
                     // Distributions of its parameters as they are
                     caf::replies_to<measure_atom>::with<ProtoBytes>,
                     // folder: answered when everything is captured, the writing goes on beside
                     // what else the learner does
                     caf::replies_to<save_atom, std::string>::with<done_atom>,
                     caf::replies_to<written_atom>::with<done_atom>, // when it is written
                     // a snapshot now, from which others start: its number of updates
                     caf::replies_to<save_atom>::with<std::int64_t>,
                     caf::replies_to<load_atom, std::string>::with<done_atom>,
                     caf::reacts_to<written_atom, std::string>, // to itself: what failed, or ""
                     caf::reacts_to<lost_atom>>; // to itself: a stranded learner was not asked for
                                                 // its state in time

using EvaluatorActor =
    caf::typed_actor<caf::reacts_to<publish_atom, ParametersPtr>,
                     caf::replies_to<evaluate_atom, ProtoBytes>::with<ProtoBytes>,
                     caf::replies_to<report_atom>::with<ProtoBytes>, // ProcessTime
                     caf::reacts_to<step_atom>>;

/// One shard of the parameters of learners that push gradients to servers. Gradients and parameters
/// travel over its host's socket, not through its mailbox.
using ParameterServerActor = caf::typed_actor<
    caf::replies_to<hello_atom>::with<std::string>,           // where the learners' clients connect
    caf::replies_to<report_atom>::with<ProtoBytes>,           // ParameterServerReport
    caf::replies_to<save_atom, std::string>::with<done_atom>, // folder
    caf::replies_to<load_atom, std::string>::with<done_atom>>; // folder; before the first learner

/// The kinds of actors of a run, in order of start.
enum class Role : std::uint8_t { replay, parameter_server, learner, environment, evaluator };
const char* role_name(Role role);
/// Throws std::invalid_argument with the list of roles.
Role role_named(const std::string& name);

/// Polls all actors' reports, sums them up and sends its listener (update_atom, UpdatePtr) ten
/// times a second.
using MetricsActor = caf::typed_actor<
    caf::reacts_to<subscribe_atom, std::uint8_t, std::int32_t, caf::actor>, // role, index, who
    caf::reacts_to<grant_atom, bool>, // the time that passes counts as training
    caf::reacts_to<lost_atom, std::uint8_t, std::int32_t>, // role, index: an actor that need not
                                                           // report
    caf::reacts_to<load_atom, ProtoBytes>,                 // MetricsRecord of the head before
    caf::replies_to<report_atom>::with<UpdatePtr>,         // after every actor has reported again
    caf::reacts_to<tick_atom>,
    caf::reacts_to<step_atom>>; // to itself: asks the shards

/// Writes one checkpoint at a time: every actor its part, then the manifest, then the rename that
/// makes it complete.
using CheckpointerActor = caf::typed_actor<
    caf::reacts_to<subscribe_atom, std::uint8_t, std::int32_t, caf::actor>,
    caf::reacts_to<lost_atom, std::uint8_t, std::int32_t>, // a checkpoint that needs it fails
    caf::reacts_to<load_atom, std::string>,                // the run continues from this checkpoint
    // runs folder, RunState; answered when everything is captured and the run may go on
    caf::replies_to<save_atom, std::string, ProtoBytes>::with<done_atom>,
    caf::replies_to<written_atom>::with<std::string>>; // its path, when it is complete

/// The store in which learners of processes find each other.
using RendezvousActor = caf::typed_actor<
    caf::replies_to<store_atom, ProtoBytes>::with<ProtoBytes>, // StoreRequest -> StoreAnswer
    caf::reacts_to<tick_atom, std::uint64_t>>; // to itself: waiting requests may be overdue

/// The supervisor as the learners' store: the Life that asks, StoreRequest -> StoreAnswer.
using RendezvousPort =
    caf::typed_actor<caf::replies_to<store_atom, ProtoBytes, ProtoBytes>::with<ProtoBytes>>;

/// Starts the actors of a run here or in processes of their own, watches them and tells its
/// listener
///   (started_atom, role, index, actor, endpoint, process id; "" and 0 where it has none),
///   (lost_atom, role, index, reason, may be restarted)
///   and (node_atom, name, what became of a node that is lost).
/// A process says in every message which Life it is; what an earlier one says is refused.
using SupervisorActor = caf::typed_actor<
    caf::reacts_to<spawn_atom, std::uint8_t, std::int32_t, std::uint64_t,
                   std::int64_t>,                          // role, index, incarnation, steps before
    caf::reacts_to<stop_atom, std::uint8_t, std::int32_t>, // ends that one, which is not lost then
    caf::replies_to<hello_atom, ProtoBytes>::with<ProtoBytes>, // a process: Life -> Wiring
    // Life, its actor, the process's own handle, its endpoint; the process gets (wire_atom, Wiring)
    // when an endpoint has changed
    caf::reacts_to<joined_atom, ProtoBytes, caf::actor, caf::actor, std::string>,
    // Life, the process's own handle, which gets (beat_atom), or (stop_atom) when its life is over
    caf::reacts_to<beat_atom, ProtoBytes, caf::actor>,
    // Life of a learner, StoreRequest -> StoreAnswer, among the learners that started together
    caf::replies_to<store_atom, ProtoBytes, ProtoBytes>::with<ProtoBytes>,
    caf::reacts_to<lost_atom, ProtoBytes, std::string>, // a node: the process of that Life ended,
                                                        // how
    // a host: NodeInfo, its NodeActor, its own handle -> NodeWelcome; that handle gets (done_atom)
    // when the run is over
    caf::replies_to<node_atom, ProtoBytes, caf::actor, caf::actor>::with<ProtoBytes>,
    // its name and life, its own handle: as of a process
    caf::reacts_to<node_atom, std::string, std::uint64_t, caf::actor>,
    // ends that actor, which is not lost then; answered when its process has ended
    caf::replies_to<leave_atom, std::uint8_t, std::int32_t>::with<done_atom>,
    // the new number of environment actors; the problem, or ""
    caf::replies_to<scale_atom, std::int32_t>::with<std::string>,
    // ControlRequest of an operator -> RunStatus or ControlDone
    caf::replies_to<control_atom, ProtoBytes>::with<ProtoBytes>,
    caf::reacts_to<tick_atom>,                    // looks for silent processes
    caf::replies_to<stop_atom>::with<done_atom>>; // ends all of them

/// Answers the run's operators: status by itself, other requests with the head, which gets
/// (stop_atom) and (control_atom, number, ControlRequest, RestartOrder).
using ControlActor =
    caf::typed_actor<caf::reacts_to<update_atom, UpdatePtr>,  // from the head, as they come
                     caf::reacts_to<report_atom, ProtoBytes>, // HeadReport
                     // ControlRequest, SupervisorReport -> RunStatus or ControlDone
                     caf::replies_to<control_atom, ProtoBytes, ProtoBytes>::with<ProtoBytes>,
                     // number of a request; the problem, or ""; ControlDone
                     caf::reacts_to<answer_atom, std::uint64_t, std::string, ProtoBytes>>;

/// An actor that an embedding program adds to a run (RunConfig::companion). A report comes when the
/// run starts, without episodes, and then whenever episodes have ended and the last one was
/// answered. In a deterministic run the run waits for the answer.
using CompanionActor =
    caf::typed_actor<caf::replies_to<report_atom, ProtoBytes>::with<ProtoBytes>>; // EpisodesReport
                                                                                  // -> TaskChange

/// Starts, watches and ends the processes of one host, and reports to its supervisor how each
/// ended.
using NodeActor = caf::typed_actor<
    caf::reacts_to<spawn_atom, ProtoBytes>, // ProcessStart
                                            // Life of a process that the head before had started,
                                            // and that is of this host: looks after it from now on
    caf::reacts_to<joined_atom, ProtoBytes>,
    // the SupervisorActor of a new head, which gets the reports from now on -> NodeInfo with what
    // lives here
    caf::replies_to<joined_atom, caf::actor>::with<ProtoBytes>,
    caf::reacts_to<stop_atom, std::uint8_t, std::int32_t>, // kills it
    caf::reacts_to<tick_atom>,                             // looks for ended processes
    caf::replies_to<stop_atom>::with<done_atom>>;          // when all are gone

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
