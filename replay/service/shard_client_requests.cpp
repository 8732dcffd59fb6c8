#include <algorithm>
#include <stdexcept>
#include <utility>

#include "replay/service/shard_client_impl.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::replay {

namespace {

using env::wire::Message;
using env::wire::Socket;

constexpr std::size_t kMostInFlight = 64; // a table detects duplicates among this many sequences
constexpr int kMostIntervals = 10;        // ping intervals between unanswered pings

} // namespace

ShardClient::Impl::Impl(env::wire::Context& in, std::string where, const ShardClientOptions& o)
    : context(in),
      options(o),
      endpoint(std::move(where)),
      socket(context, env::wire::SocketType::dealer,
             {.max_frame_bytes = o.max_frame_bytes,
              .max_header_bytes = kHeaderBytes,
              .shared_memory = o.shared_memory,
              .client_keys = o.keys}) {
  if (options.window < 1 || options.window > kMostInFlight)
    throw std::invalid_argument("replay client window is " + std::to_string(options.window)
                                + " but must be 1 to " + std::to_string(kMostInFlight)
                                + " insertions");
  socket.connect(endpoint);
}

ShardClient::Impl::~Impl() {
  try {
    cancel_sample();
  } catch (const std::exception&) { // the server drops the request some time later
  }
}

void ShardClient::Impl::set_signature(const Signature& signature) {
  layout.emplace(signature);
  hash = fingerprint(signature);
}

void ShardClient::Impl::fail(const std::string& why) const {
  throw std::runtime_error("replay shard at " + endpoint + " " + why);
}

void ShardClient::Impl::send(const wire::Envelope& head) {
  Message message;
  message.header = head.SerializeAsString();
  socket.send(std::move(message), Clock::now());
}

void ShardClient::Impl::send_insertion(const Key& key, const Insertion& insertion, bool complete) {
  socket.send(encode_insertion(insertion, hash, complete, key.table,
                               most_insertion_bytes(options.max_frame_bytes)),
              Clock::now());
}

bool ShardClient::Impl::has_room(const Key& key) const {
  if (in_flight.size() >= options.window)
    return false;
  // If an older insertion arrived after this one, the table would drop it as a duplicate.
  const auto oldest = in_flight.lower_bound({key.table, key.writer, 0});
  return oldest == in_flight.end() || oldest->first.table != key.table
         || oldest->first.writer != key.writer
         || oldest->first.sequence + kMostInFlight > key.sequence;
}

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

void ShardClient::Impl::erase(const std::string& table, std::uint64_t writer,
                              std::uint64_t sequence) {
  // "" means the only table of the port, whatever its name.
  if (in_flight.erase({table, writer, sequence}) == 0)
    in_flight.erase({"", writer, sequence});
}

void ShardClient::Impl::handle(Message&& message) {
  std::string why;
  const auto head = decode_envelope(message.header, why);
  if (!head || (head->signature() != hash && !head->has_info_reply())) {
    // A server of another experiment or version sends the reason for its refusal.
    wire::Envelope foreign;
    if (foreign.ParseFromString(message.header) && foreign.has_refused())
      on_refused(foreign.refused());
    return;
  }
  switch (head->body_case()) {
  case wire::Envelope::kAccepted:
    for (const std::uint64_t sequence : head->accepted().sequences())
      erase(head->table(), head->accepted().writer(), sequence);
    break;
  case wire::Envelope::kMissing: {
    const wire::Missing& missing = head->missing();
    auto at = in_flight.find({head->table(), missing.writer(), missing.sequence()});
    if (at == in_flight.end())
      at = in_flight.find({"", missing.writer(), missing.sequence()});
    if (at != in_flight.end())
      send_insertion(at->first, *at->second, true);
    break;
  }
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
    on_refused(head->refused());
    break;
  case wire::Envelope::kPong:
    on_pong(head->pong());
    break;
  case wire::Envelope::kStatsReply:
    if (head->stats_reply().request() == question) {
      stats = stats_of(head->stats_reply());
      question_answered = true;
    }
    break;
  case wire::Envelope::kInfoReply:
    on_info(head->info_reply());
    break;
  case wire::Envelope::kDone:
    question_answered = question_answered || head->done().request() == question;
    break;
  default:
    break;
  }
}

void ShardClient::Impl::on_refused(const wire::Refused& refused) {
  if (refused.request() == 0)
    broken = refused.reason();
  else if (refused.request() == sample_request)
    sample_refusal = refused.reason();
  else if (refused.request() == question)
    question_refusal = refused.reason();
}

void ShardClient::Impl::on_info(const wire::InfoReply& reply) {
  if (question == 0 || reply.request() != question)
    return;
  info = {.protocol = kProtocol, .tables = {reply.tables().begin(), reply.tables().end()}};
  try {
    if (reply.has_signature()) {
      info.signature = signature_of(reply.signature());
      check(info.signature);
      if (fingerprint(info.signature) != reply.fingerprint())
        throw std::invalid_argument("its fingerprint differs");
    }
    if (reply.has_config()) {
      info.config = config_of(reply.config());
      check(*info.config);
    }
  } catch (const std::invalid_argument& e) {
    question = 0;
    fail(std::string("sent invalid information: ") + e.what()
         + "; run the same version on both sides");
  }
  info.stats = stats_of(reply.stats());
  info.why_waiting = reply.why_waiting();
  question_answered = true;
}

/// When a pong arrives, everything sent before its ping has reached the server or is lost, and
/// every answer to it has arrived or is lost.
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
      send_insertion(at->first, *at->second, true);
  }
  asked.clear();
  if (asked_sample != 0 && asked_sample == sample_request && !pong.sample_waits()
      && sample_received < sample_count && sample_refusal.empty())
    request_sample();
}

void ShardClient::Impl::put_asked(wire::Ping& ping) {
  asked.clear();
  const bool one_table = std::all_of(in_flight.begin(), in_flight.end(), [&](const auto& flying) {
    return flying.first.table == options.table;
  });
  for (const auto& [key, insertion] : in_flight) {
    ping.add_writers(key.writer);
    ping.add_sequences(key.sequence);
    asked.push_back(key);
    if (one_table)
      continue;
    if (ping.tables().empty() || *ping.tables().rbegin() != key.table) // tables are in order
      ping.add_tables(key.table);
    ping.add_table_places(static_cast<std::uint32_t>(ping.tables_size() - 1));
  }
}

void ShardClient::Impl::ping(Clock::time_point now) {
  const auto interval =
      std::clamp(silent(now), options.ping_interval, kMostIntervals * options.ping_interval);
  // A ping also keeps a waiting sample, however much else arrives.
  const bool renews = sample_request != 0 && now - pinged >= kMostIntervals * options.ping_interval;
  if (!waits() || (!renews && now - std::max(pinged, heard) < interval))
    return;
  if (question != 0 && !question_answered && question_refusal.empty())
    send(question_head); // may be repeated, because the requests are idempotent
  pinged = now;
  if (!unanswered)
    unanswered = now;
  if (!layout)
    return; // nothing but that question can be open
  wire::Envelope asking = head();
  wire::Ping& ping = *asking.mutable_ping();
  ping_number = ++next_number;
  ping.set_ping(ping_number);
  put_asked(ping);
  asked_sample = sample_request;
  ping.set_sample_request(sample_request);
  send(asking);
}

void ShardClient::Impl::check_alive(Clock::time_point begun, Clock::time_point now, bool over,
                                    const char* what) const {
  const bool unheard = heard < begun && now - begun >= 2 * options.ping_interval;
  if ((over && unheard) || (unanswered && silent(now) >= options.silence))
    throw ShardSilence(
        "replay shard at " + endpoint + " does not answer: waited "
        + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(now - begun).count())
        + " ms for " + what + "; is its process alive, and the endpoint right?");
}

void ShardClient::Impl::want_sample(std::int64_t count, std::chrono::milliseconds patience,
                                    std::size_t part_bytes) {
  if (count < 1)
    throw std::invalid_argument("a sample of " + std::to_string(count)
                                + " items: at least 1 is needed");
  sample_patience = std::max(patience, std::chrono::milliseconds(0));
  sample_part_bytes = part_bytes;
  if (sample_request != 0 && sample_count == count)
    return;
  cancel_sample();
  sample_count = count;
  request_sample();
}

void ShardClient::Impl::request_sample() {
  sample_request = ++next_number;
  sample_received = 0;
  sample_refusal.clear();
  pieces.clear();
  wire::Envelope asking = head();
  wire::SampleRequest& sample = *asking.mutable_sample();
  sample.set_request(sample_request);
  sample.set_count(sample_count);
  sample.set_patience_ms(static_cast<std::uint64_t>(sample_patience.count()));
  sample.set_part_bytes(sample_part_bytes);
  send(asking);
}

void ShardClient::Impl::cancel_sample() {
  if (sample_request == 0)
    return;
  wire::Envelope asking = head();
  asking.mutable_cancel()->set_request(std::exchange(sample_request, 0));
  pieces.clear();
  sample_refusal.clear();
  send(asking);
}

void ShardClient::Impl::end_sample() {
  sample_request = 0;
  pieces.clear();
  if (!sample_refusal.empty())
    fail("refuses a sample: " + std::exchange(sample_refusal, {}));
}

void ShardClient::Impl::ask(wire::Envelope asking) {
  question = next_number;
  question_head = std::move(asking);
  question_answered = false;
  question_refusal.clear();
  send(question_head);
}

bool ShardClient::Impl::answered() {
  if (question == 0 || (!question_answered && question_refusal.empty()))
    return false;
  question = 0;
  if (!question_refusal.empty())
    fail("refuses: " + std::exchange(question_refusal, {}));
  return true;
}

void ShardClient::Impl::ask(wire::Envelope asking, Deadline deadline, const char* what) {
  ask(std::move(asking));
  if (!wait_until([this] { return answered(); }, deadline, what)) {
    question = 0;
    fail(std::string("gave no answer before the deadline: ") + what);
  }
}

} // namespace troupe::replay
