/// The one type-id block of the program, the typed interfaces of all actors and the errors they
/// answer with. No message holds a floating-point number (CAF 0.17 corrupts special values on the
/// wire): numbers travel as Encoded Protobuf bytes. Types marked local are pointers that never
/// leave their process; at its border a proxy turns them into bytes on ZeroMQ.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <caf/all.hpp>

#include "replay/insertion.hpp"
#include "replay/limiter.hpp"

namespace troupe::actors {

enum class Fault : std::uint8_t {
  bad_request = 1, // the caller's mistake
  failed,          // an exception; the text says what
  late,            // a deadline passed
  stopping,        // the run is on its way out
  lost,            // a process or connection died
};
std::string to_string(Fault fault);

/// One encoded Protobuf message of actors/messages.proto.
struct Encoded {
  std::string bytes;
};

/// The acting policy, flat, as it was after `version` updates. Immutable and shared; latest wins.
struct Parameters {
  std::uint64_t version = 0;
  std::vector<float> values;
};
using ParametersPtr = std::shared_ptr<const Parameters>; // local

/// What a shard answers a sample request with: items to gather here, or rows that another process
/// gathered.
struct Sample {
  std::vector<replay::Item> items;
  std::int64_t rows = 0; // gathered rows when there are no items
  std::vector<std::byte> observation, next_observation;
  std::vector<float> action, reward, discount;
  std::vector<std::uint64_t> key;
  std::vector<double> probability;        // of each row's choice, in its shard
  std::vector<std::uint32_t> table_items; // that the shard held
};
using SamplePtr = std::shared_ptr<const Sample>; // local

/// New priorities for items of one shard.
struct Priorities {
  std::vector<std::uint64_t> keys;
  std::vector<double> values;
};
using PrioritiesPtr = std::shared_ptr<const Priorities>; // local

using LimiterPtr = std::shared_ptr<const replay::LimiterConfig>; // local

struct BatchBuffer;
using BatchPtr = std::shared_ptr<BatchBuffer>; // local
using InsertionPtr = replay::InsertionPtr;     // local

/// Something for a shard's data port to do as an actor.
using PortTask = std::function<void(caf::event_based_actor*)>;
using PortTaskPtr = std::shared_ptr<const PortTask>; // local

struct Update; // what the run tells its owner: a callback's arguments
using UpdatePtr = std::shared_ptr<const Update>; // local

} // namespace troupe::actors

// clang-format off
CAF_BEGIN_TYPE_ID_BLOCK(troupe, caf::first_custom_type_id)
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::Encoded))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::Fault))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::ParametersPtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::SamplePtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::BatchPtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::InsertionPtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::UpdatePtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::PortTaskPtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::PrioritiesPtr))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::LimiterPtr))
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
CAF_END_TYPE_ID_BLOCK(troupe)
// clang-format on

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::ParametersPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::SamplePtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::BatchPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::InsertionPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::UpdatePtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::PortTaskPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::PrioritiesPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::LimiterPtr)
CAF_ERROR_CODE_ENUM(troupe::actors::Fault, "fault")

namespace troupe::actors {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Encoded& x) {
  return f(caf::meta::type_name("Encoded"), x.bytes);
}

template <class Message>
Encoded encode(const Message& message) {
  return Encoded{message.SerializeAsString()};
}

/// Throws std::runtime_error when the bytes are no such message.
template <class Message>
Message decode(const Encoded& encoded) {
  Message message;
  if (!message.ParseFromString(encoded.bytes))
    throw std::runtime_error("an actor got " + std::to_string(encoded.bytes.size())
                             + " bytes that are no " + message.GetTypeName());
  return message;
}

/// A table shard, or its proxy in another process. Waits with the answer while the rate limiter
/// says so.
using ReplayActor = caf::typed_actor<
    caf::replies_to<insert_atom, InsertionPtr>::with<done_atom>,
    // replica, number of the request in the replica's life, rows
    caf::replies_to<sample_atom, std::uint32_t, std::uint64_t, std::uint32_t>::with<SamplePtr>,
    // replica, number of the sample that they are the answer to
    caf::replies_to<update_atom, std::uint32_t, std::uint64_t, PrioritiesPtr>::with<done_atom>,
    caf::replies_to<limit_atom, LimiterPtr>::with<done_atom>, // another limiter from now on
    caf::replies_to<report_atom>::with<Encoded>,              // ShardReport
    caf::replies_to<open_atom, bool>::with<done_atom>, // true: samples no longer wait for the ratio
    // checkpoint to write, and the one before it or "": the answer comes when everything is
    // captured, the writing goes on beside what else the shard does
    caf::replies_to<save_atom, std::string, std::string>::with<done_atom>,
    caf::replies_to<written_atom>::with<done_atom>, // when it is written
    // how the saved configuration differed from the one that applies, "" where it did not
    caf::replies_to<load_atom, std::string>::with<std::string>,
    caf::reacts_to<written_atom, std::string>, // to itself: what failed, or ""
    caf::reacts_to<save_atom>,                 // to itself: a snapshot is due
    caf::reacts_to<wire_atom, std::string>,    // to a proxy: where the shard is now
    caf::reacts_to<tick_atom>>;                // to itself

/// Holds the newest parameters and hands them to who subscribed.
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
    caf::reacts_to<step_atom>, // to itself: play a few steps, then look at the mailbox
    caf::replies_to<flush_atom>::with<std::int64_t>, // all insertions acknowledged; agent steps per
                                                     // environment so far
    caf::replies_to<report_atom>::with<Encoded>,     // EnvironmentReport
    caf::replies_to<save_atom, std::string>::with<done_atom>, // path; only when nothing is pending
    caf::replies_to<load_atom, std::string>::with<done_atom>>;

/// Gathers batches ahead of its learner, never more than granted.
using PrefetchActor =
    caf::typed_actor<caf::reacts_to<grant_atom, std::int64_t>,
                     caf::reacts_to<batch_atom, BatchPtr>, // a buffer comes back, with priorities
                     caf::replies_to<flush_atom>::with<done_atom>,     // the shards have them all
                     caf::replies_to<report_atom>::with<std::string>>; // what it waits for, or ""

/// One replica.
using LearnerActor =
    caf::typed_actor<caf::reacts_to<grant_atom, std::int64_t>, // total updates it may have made
                     caf::reacts_to<batch_atom, BatchPtr>,     // from its prefetcher
                     caf::replies_to<flush_atom>::with<std::int64_t>, // when all granted updates
                                                                      // are made and published:
                                                                      // their number
                     // what its replica evaluates to, with all the others: LearnerEvaluation
                     caf::replies_to<evaluate_atom>::with<Encoded>,
                     caf::reacts_to<step_atom>, // to itself: one update on data of its own
                     caf::replies_to<report_atom>::with<Encoded>, // LearnerReport
                     // folder: answered when everything is captured, the writing goes on beside
                     // what else the learner does
                     caf::replies_to<save_atom, std::string>::with<done_atom>,
                     caf::replies_to<written_atom>::with<done_atom>, // when it is written
                     // a snapshot now, for others to begin with: after how many updates
                     caf::replies_to<save_atom>::with<std::int64_t>,
                     caf::replies_to<load_atom, std::string>::with<done_atom>,
                     // to itself: of a snapshot, what failed or ""
                     caf::reacts_to<written_atom, bool, std::string>,
                     caf::reacts_to<lost_atom>>; // to itself: nobody came for one that is stranded

using EvaluatorActor = caf::typed_actor<caf::reacts_to<publish_atom, ParametersPtr>,
                                        caf::replies_to<evaluate_atom, Encoded>::with<Encoded>,
                                        caf::reacts_to<step_atom>>;

/// One shard of the parameters of learners that push gradients to servers. Gradients and parameters
/// go past its mailbox, over its host's socket.
using ParameterServerActor = caf::typed_actor<
    caf::replies_to<hello_atom>::with<std::string>,           // where the learners' clients connect
    caf::replies_to<report_atom>::with<Encoded>,              // ParameterServerReport
    caf::replies_to<save_atom, std::string>::with<done_atom>, // folder
    caf::replies_to<load_atom, std::string>::with<done_atom>>; // folder; before the first learner

/// What kinds of actor a run is made of and how it starts them, in order of start.
enum class Role : std::uint8_t { replay, parameter_server, learner, environment, evaluator };
const char* role_name(Role role);
/// Throws std::invalid_argument with the list of roles.
Role role_named(const std::string& name);

/// Polls all actors' reports, sums them up and tells its listener (update_atom, UpdatePtr) ten
/// times a second.
using MetricsActor = caf::typed_actor<
    caf::reacts_to<subscribe_atom, std::uint8_t, std::int32_t, caf::actor>, // role, index, who
    caf::reacts_to<grant_atom, bool>, // the time that passes counts as training
    caf::reacts_to<lost_atom, std::uint8_t, std::int32_t>, // role, index: nobody waits for it
    caf::replies_to<report_atom>::with<UpdatePtr>,         // after every actor has reported anew
    caf::reacts_to<tick_atom>>;

/// Writes one checkpoint at a time: every actor its part, then the manifest, then the rename that
/// makes it complete.
using CheckpointerActor = caf::typed_actor<
    caf::reacts_to<subscribe_atom, std::uint8_t, std::int32_t, caf::actor>,
    caf::reacts_to<lost_atom, std::uint8_t, std::int32_t>, // a checkpoint that needs it fails
    caf::reacts_to<load_atom, std::string>,                // the run goes on from this checkpoint
    // runs folder, RunState; answered when everything is captured and the run may go on
    caf::replies_to<save_atom, std::string, Encoded>::with<done_atom>,
    caf::replies_to<written_atom>::with<std::string>>; // its path, when it is complete

/// The store in which learners of processes find each other.
using RendezvousActor = caf::typed_actor<
    caf::replies_to<store_atom, Encoded>::with<Encoded>, // StoreRequest -> StoreAnswer
    caf::reacts_to<tick_atom, std::uint64_t>>;           // to itself: who waits has waited enough

/// What a supervisor is to learners that meet: the Life that asks, StoreRequest -> StoreAnswer.
using RendezvousPort =
    caf::typed_actor<caf::replies_to<store_atom, Encoded, Encoded>::with<Encoded>>;

/// Starts the actors of a run here or in processes of their own, watches them and tells its
/// listener
///   (started_atom, role, index, actor) and (lost_atom, role, index, reason, may be restarted).
/// A process says in every message which Life it is; what an earlier one says is refused.
using SupervisorActor = caf::typed_actor<
    caf::reacts_to<spawn_atom, std::uint8_t, std::int32_t, std::uint64_t,
                   std::int64_t>,                          // role, index, incarnation, steps before
    caf::reacts_to<stop_atom, std::uint8_t, std::int32_t>, // ends that one, which is not lost then
    caf::replies_to<hello_atom, Encoded>::with<Encoded>,   // a process: Life -> Wiring
    // Life, its actor, the process's own handle, its endpoint; the process gets (wire_atom, Wiring)
    // when somebody is elsewhere
    caf::reacts_to<joined_atom, Encoded, caf::actor, caf::actor, std::string>,
    // Life, the process's own handle, which gets (beat_atom), or (stop_atom) when its life is over
    caf::reacts_to<beat_atom, Encoded, caf::actor>,
    // Life of a learner, StoreRequest -> StoreAnswer, of those that began together
    caf::replies_to<store_atom, Encoded, Encoded>::with<Encoded>,
    caf::reacts_to<lost_atom, Encoded, std::string>, // a node: the process of that Life ended, how
    // a host: NodeInfo, its NodeActor, its own handle -> NodeWelcome; that handle gets (done_atom)
    // when the run is over
    caf::replies_to<node_atom, Encoded, caf::actor, caf::actor>::with<Encoded>,
    // its name and life, its own handle: as of a process
    caf::reacts_to<node_atom, std::string, std::uint64_t, caf::actor>,
    // that one goes in order and is not lost then; answered when its process is gone
    caf::replies_to<leave_atom, std::uint8_t, std::int32_t>::with<done_atom>,
    // so many environment actors from now on; what is in the way, or ""
    caf::replies_to<scale_atom, std::int32_t>::with<std::string>,
    // ControlRequest of whoever operates the run -> RunStatus or ControlDone
    caf::replies_to<control_atom, Encoded>::with<Encoded>,
    caf::reacts_to<tick_atom>,                    // looks for who is silent
    caf::replies_to<stop_atom>::with<done_atom>>; // ends all of them

/// Answers who operates the run: of itself for status, with the head for the rest, which gets
/// (stop_atom) and (control_atom, number, ControlRequest, RestartOrder).
using ControlActor =
    caf::typed_actor<caf::reacts_to<update_atom, UpdatePtr>, // from the head, as they come
                     caf::reacts_to<report_atom, Encoded>,   // HeadReport
                     // ControlRequest, SupervisorReport -> RunStatus or ControlDone
                     caf::replies_to<control_atom, Encoded, Encoded>::with<Encoded>,
                     // number of a request; what was in the way, or ""; what was done
                     caf::reacts_to<answer_atom, std::uint64_t, std::string, std::string>>;

/// Starts, watches and ends the processes of one host, and tells its supervisor how each ended.
using NodeActor =
    caf::typed_actor<caf::reacts_to<spawn_atom, Encoded>,                   // ProcessStart
                     caf::reacts_to<stop_atom, std::uint8_t, std::int32_t>, // kills it
                     caf::reacts_to<tick_atom>,                    // looks for those that ended
                     caf::replies_to<stop_atom>::with<done_atom>>; // when all are gone

namespace detail {
template <class T>
struct HoldsFloat : std::is_floating_point<T> {};
template <template <class...> class List, class... Ts>
struct HoldsFloat<List<Ts...>> : std::disjunction<HoldsFloat<Ts>...> {};
template <class... Actors>
constexpr bool kNoFloats = (!HoldsFloat<typename Actors::signatures>::value && ...);
} // namespace detail

static_assert(detail::kNoFloats<ReplayActor, ParameterActor, EnvironmentActor, PrefetchActor,
                                LearnerActor, EvaluatorActor, ParameterServerActor, MetricsActor,
                                CheckpointerActor, SupervisorActor, ControlActor, NodeActor>,
              "a message holds a floating-point number: encode it (CAF corrupts NaN and infinity)");

} // namespace troupe::actors
