#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

#include "env/wire/socket.hpp"
#include "replay/gather.hpp"
#include "replay/remote.hpp"
#include "replay/table_config_wire.hpp"
#include "replay/wire_format.hpp"

namespace troupe::replay {

namespace {

using env::wire::Message;
using env::wire::Socket;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostWindow = 64; // a table tells duplicates apart over so many sequences
constexpr int kMostAsked = 4096;        // sequences in one ping

struct SamplePiece {
  wire::SamplePart header;
  std::vector<env::wire::Frame> frames;
};

} // namespace

struct ShardClient::Impl {
  using Key = std::pair<std::uint64_t, std::uint64_t>; // writer, sequence

  Impl(env::wire::Context& context, std::string where, const TransitionSpec& transitions,
       const ShardClientOptions& o)
      : spec((check(transitions), transitions)),
        hash(fingerprint(transitions)),
        options(o),
        endpoint(std::move(where)),
        socket(context, env::wire::SocketType::dealer,
               {.shared_memory = o.shared_memory, .client_keys = o.keys}) {
    if (options.window < 1 || options.window > kMostWindow)
      throw std::invalid_argument("replay client window is " + std::to_string(options.window)
                                  + " but must be 1 to " + std::to_string(kMostWindow)
                                  + " insertions");
    socket.connect(endpoint);
  }

  void send(Message&& message) { socket.send(std::move(message), Clock::now()); }
  void send(const wire::Envelope& head) {
    Message message;
    message.header = head.SerializeAsString();
    send(std::move(message));
  }
  void send_insertion(const Insertion& insertion, bool complete) {
    send(encode_insertion(insertion, hash, complete));
  }
  void request_sample(std::int64_t count);
  void ask(wire::Envelope head, Deadline deadline, const char* what);
  void take_pieces(const BatchView& batch, std::int64_t first_row);

  void drain(); // what has arrived
  void handle(Message&& message);
  void on_pong(const wire::Pong& pong);
  void ping(Clock::time_point now);
  bool waits() const { return !in_flight.empty() || sample_request != 0 || question != 0; }

  template <typename Done>
  bool wait_until(Done done, Deadline deadline, const char* what);
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error("replay shard at " + endpoint + " " + why);
  }

  TransitionSpec spec;
  std::uint64_t hash;
  ShardClientOptions options;
  std::string endpoint;
  Socket socket;

  std::map<Key, InsertionPtr> in_flight;
  std::uint64_t next_number = 0; // of requests and pings
  std::uint64_t sample_request = 0;
  std::int64_t sample_count = 0;
  std::int64_t sample_received = 0; // rows of the pieces below
  std::deque<SamplePiece> pieces;
  std::string sample_refusal;
  std::chrono::milliseconds sample_patience{0};
  std::uint64_t question = 0; // statistics, priorities or a limiter: one at a time
  wire::Envelope question_head;
  bool question_answered = false;
  std::string question_refusal;
  TableStats stats;
  std::string broken; // what the server says of our messages

  Clock::time_point heard = Clock::now();
  Clock::time_point pinged = Clock::now();
  std::optional<Clock::time_point> unanswered; // since the first ping without an answer
  std::uint64_t ping_number = 0;
  std::vector<Key> asked; // by that ping
  std::uint64_t asked_sample = 0;
};

void ShardClient::Impl::drain() {
  for (;;) {
    Message message;
    const Socket::Received got = socket.try_receive(message);
    if (got == Socket::Received::nothing)
      break;
    heard = Clock::now();
    unanswered.reset();
    if (got == Socket::Received::message)
      handle(std::move(message));
  }
  if (!broken.empty())
    fail("refuses what this side sends: " + std::exchange(broken, {}));
}

void ShardClient::Impl::handle(Message&& message) {
  std::string why;
  const auto head = decode_envelope(message.header, hash, why);
  if (!head) {
    // A server of another experiment says so in words.
    wire::Envelope foreign;
    if (foreign.ParseFromString(message.header) && foreign.has_refused())
      broken = foreign.refused().reason();
    return;
  }
  switch (head->body_case()) {
  case wire::Envelope::kAccepted:
    for (const std::uint64_t sequence : head->accepted().sequences())
      in_flight.erase({head->accepted().writer(), sequence});
    break;
  case wire::Envelope::kMissing:
    if (const auto at = in_flight.find({head->missing().writer(), head->missing().sequence()});
        at != in_flight.end())
      send_insertion(*at->second, true);
    break;
  case wire::Envelope::kSamplePart: {
    const wire::SamplePart& part = head->sample_part();
    if (sample_request == 0 || part.request() != sample_request || part.count() < 1
        || part.first() != sample_received || part.count() > sample_count - sample_received)
      break;
    sample_received += part.count();
    pieces.push_back({part, std::move(message.frames)});
    break;
  }
  case wire::Envelope::kRefused:
    if (head->refused().request() == 0)
      broken = head->refused().reason();
    else if (head->refused().request() == sample_request)
      sample_refusal = head->refused().reason();
    else if (head->refused().request() == question)
      question_refusal = head->refused().reason();
    break;
  case wire::Envelope::kPong:
    on_pong(head->pong());
    break;
  case wire::Envelope::kStatsReply: {
    const wire::StatsReply& reply = head->stats_reply();
    if (reply.request() != question)
      break;
    stats = stats_of(reply);
    question_answered = true;
    break;
  }
  case wire::Envelope::kDone:
    question_answered = question_answered || head->done().request() == question;
    break;
  default:
    break;
  }
}

/// Everything sent before the ping has reached the server or is lost; so is every answer to it.
void ShardClient::Impl::on_pong(const wire::Pong& pong) {
  if (pong.ping() != ping_number || pong.states().size() != asked.size())
    return;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto at = in_flight.find(asked[i]);
    if (at == in_flight.end())
      continue;
    if (pong.states()[i] == 2)
      in_flight.erase(at);
    else if (pong.states()[i] == 0)
      send_insertion(*at->second, true);
  }
  asked.clear();
  if (asked_sample != 0 && asked_sample == sample_request && !pong.sample_waits()
      && sample_received < sample_count && sample_refusal.empty())
    request_sample(sample_count);
}

void ShardClient::Impl::ping(Clock::time_point now) {
  if (!waits() || now - std::max(pinged, heard) < options.ping_interval)
    return;
  wire::Envelope head = envelope(hash);
  wire::Ping& ping = *head.mutable_ping();
  ping_number = ++next_number;
  ping.set_ping(ping_number);
  asked.clear();
  for (const auto& [key, insertion] : in_flight) {
    if (ping.writers_size() == kMostAsked)
      break;
    ping.add_writers(key.first);
    ping.add_sequences(key.second);
    asked.push_back(key);
  }
  asked_sample = sample_request;
  ping.set_sample_request(sample_request);
  pinged = now;
  if (!unanswered)
    unanswered = now;
  if (question != 0 && !question_answered && question_refusal.empty())
    send(question_head); // asked again: what was done once stays the same
  send(head);
}

template <typename Done>
bool ShardClient::Impl::wait_until(Done done, Deadline deadline, const char* what) {
  const Clock::time_point begun = Clock::now();
  for (;;) {
    drain();
    if (done())
      return true;
    const Clock::time_point now = Clock::now();
    ping(now);
    if (now >= deadline) {
      const bool silent = heard < begun && now - begun >= 2 * options.ping_interval;
      if (silent || (unanswered && now - *unanswered >= options.silence))
        fail(std::string("does not answer: waited ")
             + std::to_string(
                 std::chrono::duration_cast<std::chrono::milliseconds>(now - begun).count())
             + " ms for " + what + "; is its process alive, and the endpoint right?");
      return false;
    }
    socket.wait(std::min(deadline, now + options.ping_interval));
  }
}

void ShardClient::Impl::request_sample(std::int64_t count) {
  sample_request = ++next_number;
  sample_count = count;
  sample_received = 0;
  sample_refusal.clear();
  pieces.clear();
  wire::Envelope head = envelope(hash);
  head.mutable_sample()->set_request(sample_request);
  head.mutable_sample()->set_count(count);
  head.mutable_sample()->set_patience_ms(static_cast<std::uint64_t>(sample_patience.count()));
  send(head);
}

void ShardClient::Impl::take_pieces(const BatchView& batch, std::int64_t first_row) {
  for (; !pieces.empty(); pieces.pop_front()) {
    const SamplePiece& piece = pieces.front();
    if (!decode_sample(spec, piece.header, piece.frames, batch, first_row + piece.header.first()))
      fail("sent a damaged batch");
  }
}

ShardClient::ShardClient(env::wire::Context& context, const std::string& endpoint,
                         const TransitionSpec& spec, const ShardClientOptions& options)
    : impl_(std::make_unique<Impl>(context, endpoint, spec, options)) {}

ShardClient::~ShardClient() = default;

bool ShardClient::insert(InsertionPtr insertion, Deadline deadline) {
  Impl& my = *impl_;
  const auto has_room = [&] { return my.in_flight.size() < my.options.window; };
  if (!my.wait_until(has_room, deadline, "room in the window of insertions"))
    return false;
  my.send_insertion(*insertion, false);
  const Impl::Key key{insertion->writer_id, insertion->sequence};
  my.in_flight.insert_or_assign(key, std::move(insertion));
  return true;
}

void ShardClient::insert(InsertionPtr insertion) {
  if (!insert(std::move(insertion), Clock::now() + std::chrono::seconds(10)))
    impl_->fail("accepts no insertion for 10 s: " + std::to_string(impl_->in_flight.size())
                + " are in flight; its limiter waits for samples");
}

std::size_t ShardClient::in_flight() const {
  return impl_->in_flight.size();
}

void ShardClient::poll() {
  impl_->drain();
  impl_->ping(Clock::now());
}

bool ShardClient::flush(Deadline deadline) {
  return impl_->wait_until([this] { return impl_->in_flight.empty(); }, deadline,
                           "insertions to be accepted");
}

std::optional<std::int64_t> ShardClient::sample(std::int64_t count, const BatchView& batch,
                                                std::int64_t first_row, Deadline deadline,
                                                std::chrono::milliseconds patience) {
  Impl& my = *impl_;
  check(my.spec, batch, first_row, count);
  if (count < 1)
    throw std::invalid_argument("a sample of " + std::to_string(count)
                                + " items: at least 1 is needed");
  my.sample_patience = std::max(patience, std::chrono::milliseconds(0));
  if (my.sample_request == 0 || my.sample_count != count)
    my.request_sample(count);
  // Parts are written while the later ones are on their way.
  const auto done = [&] {
    my.take_pieces(batch, first_row);
    return !my.sample_refusal.empty() || my.sample_received == my.sample_count;
  };
  const bool answered = my.wait_until(done, deadline, "a sample");
  if (!answered && my.sample_received == 0)
    return std::nullopt;
  // Begun and not finished in time: its first part is in this batch and cannot serve another.
  my.sample_request = 0;
  if (!my.sample_refusal.empty())
    my.fail("refuses a sample: " + std::exchange(my.sample_refusal, {}));
  return answered ? std::optional(count) : std::nullopt;
}

/// Waits for the answer to a question, whose number it has.
void ShardClient::Impl::ask(wire::Envelope head, Deadline deadline, const char* what) {
  question = next_number;
  question_head = std::move(head);
  question_answered = false;
  question_refusal.clear();
  send(question_head);
  const bool over =
      wait_until([&] { return question_answered || !question_refusal.empty(); }, deadline, what);
  question = 0;
  if (!question_refusal.empty())
    fail("refuses: " + question_refusal);
  if (!over)
    fail(std::string("gave no answer before the deadline: ") + what);
}

TableStats ShardClient::stats(Deadline deadline) {
  wire::Envelope head = envelope(impl_->hash);
  head.mutable_stats()->set_request(++impl_->next_number);
  impl_->ask(std::move(head), deadline, "its statistics");
  return impl_->stats;
}

void ShardClient::update_priorities(std::span<const std::uint64_t> keys,
                                    std::span<const double> priorities, Deadline deadline) {
  if (keys.size() != priorities.size())
    throw std::invalid_argument(std::to_string(keys.size()) + " keys and "
                                + std::to_string(priorities.size())
                                + " priorities: there must be one for each key");
  wire::Envelope head = envelope(impl_->hash);
  wire::UpdatePriorities& update = *head.mutable_update();
  update.set_request(++impl_->next_number);
  update.mutable_keys()->Add(keys.begin(), keys.end());
  update.mutable_priorities()->Add(priorities.begin(), priorities.end());
  impl_->ask(std::move(head), deadline, "priorities to be taken");
}

void ShardClient::set_limiter(const LimiterConfig& limiter, Deadline deadline) {
  wire::Envelope head = envelope(impl_->hash);
  head.mutable_set_limiter()->set_request(++impl_->next_number);
  put(limiter, *head.mutable_set_limiter()->mutable_limiter());
  impl_->ask(std::move(head), deadline, "a limiter to be taken");
}

} // namespace troupe::replay
