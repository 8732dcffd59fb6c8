#pragma once

#include <compare>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/wire/socket.hpp"
#include "replay/service/shard_client.hpp"
#include "replay/service/wire_format.hpp"

namespace troupe::replay {

/// The open requests of a client and their answers, implemented in shard_client_requests.cpp. The
/// public functions are in shard_client.cpp.
struct ShardClient::Impl {
  using Clock = std::chrono::steady_clock;

  struct Key { // of an insertion
    std::string table;
    std::uint64_t writer = 0;
    std::uint64_t sequence = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct SamplePiece {
    wire::SamplePart header;
    std::vector<env::wire::Frame> frames;
  };

  Impl(env::wire::Context& in, std::string where, const ShardClientOptions& o);
  ~Impl(); // cancels the open sample
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Must be called before any request except info().
  void set_signature(const Signature& signature);

  wire::Envelope head() const { return envelope(hash, options.table); }
  void send(const wire::Envelope& head);
  bool has_room(const Key& key) const; // whether the window admits one more insertion
  void send_insertion(const Key& key, const Insertion& insertion, bool complete);

  /// Requests a sample unless one of the same count is open already.
  void want_sample(std::int64_t count, std::chrono::milliseconds patience, std::size_t part_bytes);
  void request_sample();
  /// Withdraws the open request, if there is one.
  void cancel_sample();
  /// Closes the request after its answer or deadline; throws if it was refused.
  void end_sample();

  wire::Envelope stats_question();
  wire::Envelope update_question(std::span<const std::uint64_t> keys,
                                 std::span<const double> priorities);
  /// Sends a question, which has the number `next_number`.
  void ask(wire::Envelope head);
  /// Returns true once, after the answer has arrived. Throws if the question was refused.
  bool answered();
  void ask(wire::Envelope head, Deadline deadline, const char* what); // also waits for the answer

  void drain(); // handles all messages that have arrived
  void handle(env::wire::Message&& message);
  void on_pong(const wire::Pong& pong);
  void on_refused(const wire::Refused& refused);
  void on_info(const wire::InfoReply& reply);
  void erase(const std::string& table, std::uint64_t writer, std::uint64_t sequence);
  void ping(Clock::time_point now);
  void put_asked(wire::Ping& ping);
  std::chrono::milliseconds silent(Clock::time_point now) const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - unanswered.value_or(now));
  }
  bool waits() const { return !in_flight.empty() || sample_request != 0 || question != 0; }

  template <typename Done>
  bool wait_until(Done done, Deadline deadline, const char* what);
  /// Throws ShardSilence if the server was silent. Called during a wait and, with `over`, at its
  /// end.
  void check_alive(Clock::time_point begun, Clock::time_point now, bool over,
                   const char* what) const;
  [[noreturn]] void fail(const std::string& why) const;

  std::optional<TransitionSpec> spec; // only in a client of transitions
  std::optional<RowLayout> layout;    // empty: the signature is not known yet
  std::uint64_t hash = 0;
  env::wire::Context& context;
  ShardClientOptions options;
  std::string endpoint;
  env::wire::Socket socket;

  std::map<Key, InsertionPtr> in_flight;
  std::uint64_t next_number = 0; // number of the last request or ping
  std::uint64_t sample_request = 0;
  std::int64_t sample_count = 0;
  std::int64_t sample_received = 0; // rows in `pieces`
  std::deque<SamplePiece> pieces;
  std::string sample_refusal;
  std::chrono::milliseconds sample_patience{0};
  std::size_t sample_part_bytes = 0;
  std::uint64_t question = 0; // number of the open question; 0: none
  wire::Envelope question_head;
  bool question_answered = false;
  std::string question_refusal;
  TableStats stats;
  ShardInfo info;
  std::string broken; // why the server refuses this client's messages; "": it does not

  Clock::time_point heard = Clock::now();
  Clock::time_point pinged = Clock::now();
  std::optional<Clock::time_point> unanswered; // time of the first unanswered ping
  std::uint64_t ping_number = 0;
  std::vector<Key> asked; // insertions that the ping asks about
  std::uint64_t asked_sample = 0;
};

template <typename Done>
bool ShardClient::Impl::wait_until(Done done, Deadline deadline, const char* what) {
  const Clock::time_point begun = Clock::now();
  for (;;) {
    drain();
    if (done())
      return true;
    const Clock::time_point now = Clock::now();
    ping(now);
    check_alive(begun, now, now >= deadline, what);
    if (now >= deadline)
      return false;
    socket.wait(std::min(deadline, now + options.ping_interval));
  }
}

} // namespace troupe::replay
