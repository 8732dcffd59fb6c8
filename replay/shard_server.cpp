#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "env/wire/socket.hpp"
#include "replay/gather.hpp"
#include "replay/outbox.hpp"
#include "replay/remembered.hpp"
#include "replay/remote.hpp"
#include "replay/table_config_wire.hpp"
#include "replay/wire_format.hpp"

namespace troupe::replay {

namespace {

using env::wire::Frame;
using env::wire::Message;
using env::wire::Socket;

constexpr std::size_t kRememberedSequences = 1024; // per writer
constexpr int kMessagesPerTurn = 256;              // before answers have their turn
constexpr int kMostAsked = 4096;                   // sequences in one ping
constexpr std::chrono::seconds kNap{1};
constexpr std::uint64_t kMostPatienceMs = std::uint64_t{1} << 40;

struct WriterState {
  std::string peer;
  std::map<std::uint64_t, bool> accepted; // by sequence; false: handed on and not yet in
  std::uint64_t used = 0;
};

} // namespace

struct ShardServer::Impl {
  Impl(env::wire::Context& context, const Signature& signature, ShardHandlers h,
       const ShardServerOptions& o)
      : layout(signature),
        hash(fingerprint(signature)),
        handlers(std::move(h)),
        options(o),
        socket(context, env::wire::SocketType::router,
               {.max_frame_bytes = o.max_frame_bytes,
                .shared_memory = o.shared_memory,
                .server_keys = o.keys}),
        endpoint(socket.bind(o.endpoint)),
        decoder(signature, {.max_chunk_bytes = o.max_chunk_bytes, .max_writers = o.max_writers}),
        outbox(std::make_shared<Outbox>()),
        thread([this](const std::stop_token& stop) { run(stop); }) {}

  ~Impl() {
    thread.request_stop();
    outbox->wake();
    thread.join();
    outbox->close();
  }

  void run(const std::stop_token& stop);
  void handle(Message&& message);
  void on_insert(const wire::Insert& header, Message&& message);
  void on_sample(const wire::SampleRequest& request, const std::string& peer);
  void on_ping(const wire::Ping& ping, const std::string& peer);
  void on_update(const wire::UpdatePriorities& update, const std::string& peer);
  void on_set_limiter(const wire::SetLimiter& change, const std::string& peer);
  std::shared_ptr<Reply> reply_to(const std::string& peer, std::uint64_t request,
                                  const std::string& refusal);
  void on_stats(const wire::StatsRequest& request, const std::string& peer);
  void deliver(std::vector<Answer> answers);
  void send_items(const Answer& answer);
  void send(const std::string& peer, const wire::Envelope& head);
  void refuse(const std::string& peer, std::uint64_t request, const std::string& reason);
  void drop(const std::string& why);

  RowLayout layout;
  std::uint64_t hash;
  ShardHandlers handlers;
  ShardServerOptions options;
  Socket socket;
  std::string endpoint;
  InsertionDecoder decoder;
  std::shared_ptr<Outbox> outbox;
  std::unordered_map<std::uint64_t, WriterState> writers;
  std::uint64_t used = 0;
  std::set<std::pair<std::string, std::uint64_t>> waiting_samples; // peer, request
  std::set<std::string> logged;
  std::atomic<std::int64_t> garbage = 0;
  std::atomic<std::int64_t> insertions = 0;
  std::atomic<std::int64_t> duplicates = 0;
  std::atomic<std::int64_t> samples = 0;
  std::atomic<std::int64_t> shared = 0;
  std::jthread thread; // last: it uses all of the above
};

void ShardServer::Impl::run(const std::stop_token& stop) {
  Deadline due = Deadline::max();
  while (!stop.stop_requested()) {
    socket.wait(std::min(due, std::chrono::steady_clock::now() + kNap), outbox->wake_fd());
    for (int i = 0; i < kMessagesPerTurn; ++i) {
      Message message;
      const Socket::Received got = socket.try_receive(message);
      if (got == Socket::Received::nothing)
        break;
      if (got == Socket::Received::oversized) {
        drop("a message with a larger header or more frames than allowed");
        continue;
      }
      try {
        handle(std::move(message));
      } catch (const std::exception& e) { // bad_alloc, or the owner's handler
        drop(e.what());
      }
    }
    if (handlers.tick)
      due = handlers.tick(std::chrono::steady_clock::now());
    deliver(outbox->take());
    const env::wire::SharedCounters through = socket.shared_counters();
    shared = through.frames_sent + through.frames_received;
    if (socket.strangers() > 0 && handlers.log && logged.insert("strangers").second)
      handlers.log("replay data port " + endpoint + ": refused a client whose keys do not fit");
  }
}

void ShardServer::Impl::drop(const std::string& why) {
  ++garbage;
  constexpr std::size_t kMostKinds = 64;
  if (logged.size() < kMostKinds && logged.insert(why).second && handlers.log)
    handlers.log("replay data port " + endpoint + ": dropped " + why);
}

void ShardServer::Impl::send(const std::string& peer, const wire::Envelope& head) {
  Message message;
  message.peer = peer;
  message.header = head.SerializeAsString();
  socket.send(std::move(message), std::chrono::steady_clock::now());
}

void ShardServer::Impl::refuse(const std::string& peer, std::uint64_t request,
                               const std::string& reason) {
  wire::Envelope head = envelope(hash);
  head.mutable_refused()->set_request(request);
  head.mutable_refused()->set_reason(reason);
  send(peer, head);
}

void ShardServer::Impl::handle(Message&& message) {
  std::string why;
  const auto head = decode_envelope(message.header, hash, why);
  if (!head) {
    drop(why);
    refuse(message.peer, 0, why + "; the server stores " + describe(layout.signature));
    return;
  }
  if (head->has_insert())
    on_insert(head->insert(), std::move(message));
  else if (head->has_sample())
    on_sample(head->sample(), message.peer);
  else if (head->has_ping())
    on_ping(head->ping(), message.peer);
  else if (head->has_stats())
    on_stats(head->stats(), message.peer);
  else if (head->has_update())
    on_update(head->update(), message.peer);
  else if (head->has_set_limiter())
    on_set_limiter(head->set_limiter(), message.peer);
  else
    drop("a message that only a server sends");
}

void ShardServer::Impl::on_insert(const wire::Insert& header, Message&& message) {
  WriterState& from = remember(writers, header.writer(), options.max_writers, ++used);
  from.peer = message.peer;
  const auto known = from.accepted.find(header.sequence());
  if (known != from.accepted.end()) {
    ++duplicates;
    if (known->second)
      outbox->put({.writer_id = header.writer(), .number = header.sequence()});
    return; // one that waits is acknowledged when it is in
  }
  InsertionPtr insertion;
  std::string why;
  switch (decoder.decode(header, message.frames, insertion, why)) {
  case InsertionDecoder::Result::garbage:
    drop(why);
    refuse(message.peer, 0, why);
    return;
  case InsertionDecoder::Result::missing: {
    wire::Envelope head = envelope(hash);
    head.mutable_missing()->set_writer(header.writer());
    head.mutable_missing()->set_sequence(header.sequence());
    send(message.peer, head);
    return;
  }
  case InsertionDecoder::Result::insertion:
    break;
  }
  if (options.transitions
      && !std::all_of(insertion->items.begin(), insertion->items.end(), [&](const Item& item) {
           return is_transition(*options.transitions, item);
         })) {
    drop("items that are not the transitions of " + layout.signature.items);
    refuse(message.peer, 0, "its items are not " + layout.signature.items);
    return;
  }
  from.accepted.emplace(header.sequence(), false);
  while (from.accepted.size() > kRememberedSequences)
    from.accepted.erase(from.accepted.begin());
  ++insertions;
  auto reply = std::make_shared<Reply>(outbox, Answer{.kind = Answer::Kind::refused_insertion,
                                                      .writer_id = header.writer(),
                                                      .number = header.sequence()});
  handlers.insert(std::move(insertion), [reply] { reply->answer(Answer::Kind::accepted); });
}

void ShardServer::Impl::on_sample(const wire::SampleRequest& request, const std::string& peer) {
  if (request.count() < 1 || request.count() > options.max_sample) {
    refuse(peer, request.request(),
           "a sample of " + std::to_string(request.count()) + " items: 1 to "
               + std::to_string(options.max_sample) + " are allowed");
    return;
  }
  if (waiting_samples.size() >= options.max_waiting_samples) {
    refuse(peer, request.request(),
           std::to_string(waiting_samples.size()) + " samples wait already; ask again later");
    return;
  }
  if (!waiting_samples.emplace(peer, request.request()).second)
    return;
  auto reply = std::make_shared<Reply>(
      outbox, Answer{.kind = Answer::Kind::items, .peer = peer, .number = request.request()});
  Patience patience;
  patience.who = "a remote client";
  patience.refused = [reply](const std::string& why) {
    reply->answer(Answer::Kind::items, {}, {}, why);
  };
  if (request.patience_ms() > 0)
    patience.deadline = std::chrono::steady_clock::now()
                        + std::chrono::milliseconds(
                            std::min<std::uint64_t>(request.patience_ms(), kMostPatienceMs));
  handlers.sample(
      request.count(),
      [reply](std::vector<Item> items) { reply->answer(Answer::Kind::items, std::move(items)); },
      std::move(patience));
}

/// An answer that is the given refusal unless the owner gives another.
std::shared_ptr<Reply> ShardServer::Impl::reply_to(const std::string& peer, std::uint64_t request,
                                                   const std::string& refusal) {
  return std::make_shared<Reply>(
      outbox,
      Answer{.kind = Answer::Kind::refused, .peer = peer, .number = request, .text = refusal});
}

void ShardServer::Impl::on_update(const wire::UpdatePriorities& update, const std::string& peer) {
  const auto& priorities = update.priorities();
  if (!handlers.update)
    return refuse(peer, update.request(), "this shard takes no priorities");
  if (update.keys_size() != priorities.size() || priorities.size() > options.max_sample
      || !std::all_of(priorities.begin(), priorities.end(), valid_priority))
    return refuse(peer, update.request(),
                  std::to_string(priorities.size()) + " priorities for "
                      + std::to_string(update.keys_size())
                      + " keys: one of 0 to 1e12 for each of at" + " most "
                      + std::to_string(options.max_sample) + " is allowed");
  const auto reply = reply_to(peer, update.request(), "the shard took no priorities: it stops");
  handlers.update({update.keys().begin(), update.keys().end()},
                  {priorities.begin(), priorities.end()}, [reply](const std::string& error) {
                    reply->answer(error.empty() ? Answer::Kind::done : Answer::Kind::refused, {},
                                  {}, error);
                  });
}

void ShardServer::Impl::on_set_limiter(const wire::SetLimiter& change, const std::string& peer) {
  if (!handlers.set_limiter)
    return refuse(peer, change.request(), "this shard's limiter is not for clients to change");
  const auto reply = reply_to(peer, change.request(), "the shard took no limiter: it stops");
  handlers.set_limiter(limiter_of(change.limiter()), [reply](const std::string& error) {
    reply->answer(error.empty() ? Answer::Kind::done : Answer::Kind::refused, {}, {}, error);
  });
}

void ShardServer::Impl::on_ping(const wire::Ping& ping, const std::string& peer) {
  if (ping.writers_size() != ping.sequences_size() || ping.writers_size() > kMostAsked) {
    drop("a ping whose parts do not fit");
    return;
  }
  // What the owner has answered goes first, so that the pong never overtakes it.
  deliver(outbox->take());
  wire::Envelope head = envelope(hash);
  wire::Pong& pong = *head.mutable_pong();
  pong.set_ping(ping.ping());
  for (int i = 0; i < ping.writers_size(); ++i) {
    char state = 0;
    if (const auto from = writers.find(ping.writers(i)); from != writers.end()) {
      from->second.peer = peer;
      const auto at = from->second.accepted.find(ping.sequences(i));
      if (at != from->second.accepted.end())
        state = at->second ? 2 : 1;
    }
    pong.mutable_states()->push_back(state);
  }
  pong.set_sample_waits(waiting_samples.contains({peer, ping.sample_request()}));
  send(peer, head);
}

void ShardServer::Impl::on_stats(const wire::StatsRequest& request, const std::string& peer) {
  const auto reply = reply_to(peer, request.request(), "the shard gave no statistics");
  handlers.stats(
      [reply](const TableStats& stats) { reply->answer(Answer::Kind::stats, {}, stats); });
}

void ShardServer::Impl::deliver(std::vector<Answer> answers) {
  std::map<std::uint64_t, wire::Envelope> accepted; // by writer
  for (Answer& answer : answers) {
    switch (answer.kind) {
    case Answer::Kind::accepted:
    case Answer::Kind::refused_insertion: {
      const auto from = writers.find(answer.writer_id);
      if (from == writers.end())
        break;
      if (answer.kind == Answer::Kind::refused_insertion) {
        from->second.accepted.erase(answer.number); // the next ping finds that out
        break;
      }
      from->second.accepted[answer.number] = true;
      const auto [at, added] = accepted.try_emplace(answer.writer_id, envelope(hash));
      at->second.mutable_accepted()->set_writer(answer.writer_id);
      at->second.mutable_accepted()->add_sequences(answer.number);
      break;
    }
    case Answer::Kind::items:
      send_items(answer);
      break;
    case Answer::Kind::stats: {
      wire::Envelope head = envelope(hash);
      head.mutable_stats_reply()->set_request(answer.number);
      put(answer.stats, *head.mutable_stats_reply());
      send(answer.peer, head);
      break;
    }
    case Answer::Kind::done: {
      wire::Envelope head = envelope(hash);
      head.mutable_done()->set_request(answer.number);
      send(answer.peer, head);
      break;
    }
    case Answer::Kind::refused:
      refuse(answer.peer, answer.number, answer.text);
      break;
    }
  }
  for (const auto& [id, head] : accepted)
    send(writers.at(id).peer, head);
}

void ShardServer::Impl::send_items(const Answer& answer) {
  waiting_samples.erase({answer.peer, answer.number});
  if (answer.items.empty()) {
    refuse(answer.peer, answer.number,
           answer.text.empty() ? "the shard gave no sample: it stops" : answer.text);
    return;
  }
  ++samples;
  const auto frame = [&](std::size_t bytes) { return socket.frame(bytes, answer.peer); };
  std::span<const Item> left(answer.items);
  std::int64_t first = 0;
  while (!left.empty()) {
    const std::size_t count = part_size(layout, left);
    Message message = encode_sample(layout, hash, answer.number, first, left.first(count), frame);
    message.peer = answer.peer;
    socket.send(std::move(message), std::chrono::steady_clock::now());
    left = left.subspan(count);
    first += static_cast<std::int64_t>(count);
  }
}

ShardServer::ShardServer(env::wire::Context& context, const Signature& signature,
                         ShardHandlers handlers, const ShardServerOptions& options)
    : impl_(std::make_unique<Impl>(context, signature, std::move(handlers), options)) {}

ShardServer::~ShardServer() = default;

const std::string& ShardServer::endpoint() const {
  return impl_->endpoint;
}

ShardServerCounters ShardServer::counters() const {
  return {.garbage = impl_->garbage,
          .insertions = impl_->insertions,
          .duplicates = impl_->duplicates,
          .samples = impl_->samples,
          .strangers = impl_->socket.strangers(),
          .shared = impl_->shared};
}

} // namespace troupe::replay
