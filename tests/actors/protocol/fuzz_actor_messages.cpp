// libFuzzer target of the messages that a head's actors receive from other processes: reports,
// histograms, requests for spans, and a learner's requests to the store. An input is a sequence of
// messages to the same actors; before each come its kind (one byte) and its length (two bytes).
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <caf/scheduler/test_coordinator.hpp>

#include "actors/protocol/histogram_wire.hpp"
#include "actors/protocol/system.hpp"
#include "actors/roles/rendezvous_actor.hpp"
#include "actors/roles/span_recorder.hpp"
#include "actors/run/metrics_actor.hpp"
#include "replay/table/rate_limiter.hpp"
#include "replay/table/table_config_wire.hpp"
#include "tests/fuzz_seeds.hpp"

namespace {

using namespace troupe::actors;

struct HandMoved : SystemConfig {
  HandMoved() : SystemConfig(false) { set("scheduler.policy", caf::atom("testing")); }
};

/// The store of learners, whose messages are delivered by hand.
class Store {
public:
  Store() : actor_(system().spawn(rendezvous_actor)) {}
  ~Store() {
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    deliver();
    scheduler().clock().advance_time(std::chrono::hours(25)); // the longest patience is a day
    deliver();
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void ask(const ProtoBytes& request) {
    caf::anon_send(actor_, store_atom_v, request);
    deliver();
  }

private:
  static caf::actor_system& system() {
    static HandMoved config;
    static auto* const made =
        new caf::actor_system(config); // not destroyed: CAF's statics end first
    return *made;
  }
  static caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system().scheduler());
  }
  static void deliver() {
    while (scheduler().try_run_once()) {
    }
  }

  RendezvousActor actor_;
};

class Head {
public:
  /// Throws as the actors do, which then refuse the message.
  void take(int kind, const ProtoBytes& message) {
    switch (kind) {
    case 0:
      sum_.add(decode<wire::EnvironmentReport>(message));
      break;
    case 1:
      sum_.add(decode<wire::LearnerReport>(message));
      break;
    case 2:
      sum_.add(decode<wire::ShardReport>(message));
      break;
    case 3:
      sum_.add(decode<wire::ParameterServerReport>(message));
      break;
    case 4:
      add_histogram(decode<wire::Histogram>(message));
      break;
    case 5:
      if (spans_.answer(decode<wire::SpansOrder>(message)).boot() != boot_of_host())
        __builtin_trap();
      break;
    case 6:
      troupe::replay::check(
          troupe::replay::limiter_of(decode<troupe::replay::wire::Limiter>(message)), 1000);
      break;
    default:
      store_.ask(message);
    }
    const Progress now = sum_.progress(0.5, true);
    if (now.agent_steps < 0 || now.updates < 0 || now.samples < 0 || now.replay_bytes < 0)
      __builtin_trap();
    sum_.waits();
  }

private:
  static void add_histogram(const wire::Histogram& message) {
    auto histogram = histogram_of(message);
    if (histogram.counts.size() != static_cast<std::size_t>(message.counts_size()))
      __builtin_trap();
    histogram.add(0.5);
    wire::Histogram again;
    put(histogram, again);
  }

  MetricsSum sum_{wire::RunState()};
  SpanRecorder spans_;
  Store store_;
};

std::string message_of(char kind, const google::protobuf::MessageLite& message) {
  const std::string bytes = message.SerializeAsString();
  return std::string{kind, static_cast<char>(bytes.size() % 256),
                     static_cast<char>(bytes.size() / 256)}
         + bytes;
}

std::string store_request(wire::StoreRequest::Operation operation, const std::string& key) {
  wire::StoreRequest made;
  made.set_operation(operation);
  made.add_keys(key);
  made.set_value("value");
  made.set_number(2);
  made.set_patience_ms(1000);
  return message_of(7, made);
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  wire::EnvironmentReport environment;
  environment.set_agent_steps(1000);
  environment.add_episode_returns(1.5);
  environment.add_episode_lengths(50);
  environment.set_waiting("waits for parameters");
  environment.mutable_process()->set_process(9);
  wire::LearnerReport learner;
  learner.set_updates(100);
  (*learner.mutable_metrics())["critic_loss"] = 0.5;
  wire::ShardReport shard;
  shard.mutable_stats()->set_inserted(500);
  wire::ParameterServerReport server;
  server.add_optimizers()->set_applied(3);
  wire::Histogram histogram;
  histogram.set_high(1);
  for (int i = 0; i < 4; ++i)
    histogram.add_counts(i);
  wire::SpansOrder start, take;
  start.set_what(wire::SpansOrder::START);
  start.set_capacity(10);
  take.set_what(wire::SpansOrder::TAKE);
  replay::wire::Limiter limiter;
  replay::put(replay::RateLimiterConfig{}, limiter);
  using Request = wire::StoreRequest;
  const std::string reports = message_of(0, environment) + message_of(1, learner)
                              + message_of(2, shard) + message_of(3, server)
                              + message_of(0, environment);
  const std::string store = store_request(Request::GET, "a") + store_request(Request::SET, "a")
                            + store_request(Request::ADD, "n") + store_request(Request::ADD, "n")
                            + store_request(Request::WAIT, "b")
                            + store_request(Request::REMOVE, "a");
  return {reports, message_of(4, histogram), message_of(5, start) + message_of(5, take),
          message_of(6, limiter), store};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Head head;
  std::string_view left(reinterpret_cast<const char*>(data), size);
  while (left.size() >= 3) {
    const int kind = left[0] % 8;
    const std::size_t bytes = static_cast<unsigned char>(left[1])
                              + std::size_t{256} * static_cast<unsigned char>(left[2]);
    left.remove_prefix(3);
    const ProtoBytes message{std::string(left.substr(0, bytes))};
    left.remove_prefix(std::min(bytes, left.size()));
    try {
      head.take(kind, message);
    } catch (const std::runtime_error&) {
    } catch (const std::invalid_argument&) {
    }
  }
  return 0;
}
