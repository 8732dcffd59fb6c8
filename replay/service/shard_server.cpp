#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>

#include "env/legible.hpp"
#include "replay/service/shard_server_impl.hpp"

namespace troupe::replay {

namespace {

using env::wire::Message;
using env::wire::Socket;

constexpr int kMessagesPerTurn = 256; // messages handled before answers are sent
constexpr std::chrono::seconds kNap{1};
constexpr std::size_t kMostNameBytes = 256;

void check_names(const std::vector<ServedTable>& tables) {
  std::set<std::string> names;
  for (const ServedTable& table : tables)
    if (table.name.size() > kMostNameBytes || !is_utf8(table.name)
        || (table.name.empty() && tables.size() > 1) || !names.insert(table.name).second)
      throw std::invalid_argument("table \"" + table.name + "\" of a replay data port: each of "
                                  + std::to_string(tables.size())
                                  + " needs a different name of 1 to 256 bytes of UTF-8");
  if (tables.empty())
    throw std::invalid_argument("a replay data port without tables; give it at least one");
}

std::vector<ServedState> served_by(std::vector<ServedTable> tables,
                                   const ShardServerOptions& options) {
  check_names(tables);
  const InsertionDecoder::Limits limits{.max_chunk_bytes = options.max_chunk_bytes,
                                        .max_writers = options.max_writers};
  std::vector<ServedState> made;
  for (ServedTable& table : tables) {
    ServedState state{.name = std::move(table.name),
                      .layout = RowLayout(table.signature),
                      .hash = fingerprint(table.signature),
                      .handlers = std::move(table.handlers),
                      .transitions = std::move(table.transitions),
                      .decoder = nullptr,
                      .writers = {}};
    for (const ServedState& other : made)
      if (other.layout.signature == table.signature)
        state.decoder = other.decoder;
    if (!state.decoder)
      state.decoder = std::make_shared<InsertionDecoder>(table.signature, limits);
    made.push_back(std::move(state));
  }
  return made;
}

} // namespace

ShardServer::Impl::Impl(env::wire::Context& context, std::vector<ServedTable> served,
                        const ShardServerOptions& o)
    : tables(served_by(std::move(served), o)),
      options(o),
      socket(context, env::wire::SocketType::router,
             {.max_frame_bytes = o.max_frame_bytes,
              .max_header_bytes = kHeaderBytes,
              .max_message_bytes = most_insertion_bytes(o.max_frame_bytes) + kHeaderBytes,
              .shared_memory = o.shared_memory,
              .server_keys = o.keys}),
      endpoint(socket.bind(o.endpoint)),
      outbox(std::make_shared<Outbox>()),
      thread([this](const std::stop_token& stop) { run(stop); }) {}

ShardServer::Impl::~Impl() {
  thread.request_stop();
  outbox->wake();
  thread.join();
  outbox->close();
}

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
        const std::string why = "a message with a larger header, more frames or more bytes than "
                                "allowed";
        drop(why);
        refuse(message.peer, 0, why + "; send less at once");
        continue;
      }
      try {
        handle(std::move(message));
      } catch (const std::exception& e) { // bad_alloc, or the owner's handler
        drop(e.what());
      }
    }
    due = tick();
    deliver(outbox->take());
    const env::wire::SharedCounters through = socket.shared_counters();
    shared = through.frames_sent + through.frames_received;
    const auto& log = tables.front().handlers.log;
    if (socket.strangers() > 0 && log && !std::exchange(told_of_strangers, true))
      log("replay data port " + endpoint + ": refused a client whose keys do not match");
    for (; cut_off < socket.disconnected(); ++cut_off)
      drop("a connection from another user, or one that violated the protocol or its limits");
  }
}

void ShardServer::Impl::drop_abandoned(Deadline now) {
  if (now < lease_due)
    return;
  lease_due = Deadline::max();
  for (auto at = waiting_samples.begin(); at != waiting_samples.end();) {
    if (at->second.lease <= now) {
      *at->second.cancelled = true;
      at = waiting_samples.erase(at);
    } else {
      lease_due = std::min(lease_due, (at++)->second.lease);
    }
  }
}

Deadline ShardServer::Impl::tick() {
  drop_abandoned(std::chrono::steady_clock::now());
  Deadline due = lease_due;
  for (const ServedState& table : tables)
    if (table.handlers.tick)
      due = std::min(due, table.handlers.tick(std::chrono::steady_clock::now()));
  return due;
}

void ShardServer::Impl::drop(const std::string& why) {
  ++garbage;
  const std::int64_t times = drops.note(why, std::chrono::steady_clock::now());
  const auto& log = tables.front().handlers.log;
  if (times > 0 && log)
    log("replay data port " + endpoint + ": dropped " + why
        + (times == 1 ? "" : " (" + std::to_string(times) + " times since the last such line)"));
}

void ShardServer::Impl::send(const std::string& peer, const wire::Envelope& head) {
  Message message;
  message.peer = peer;
  message.header = head.SerializeAsString();
  socket.send(std::move(message), std::chrono::steady_clock::now());
}

wire::Envelope ShardServer::Impl::head_of(const ServedState& table) const {
  return envelope(table.hash, table.name);
}

void ShardServer::Impl::refuse(const std::string& peer, std::uint64_t request,
                               const std::string& reason) {
  // Clients accept a refusal with any signature.
  wire::Envelope head = envelope(tables.front().hash);
  head.mutable_refused()->set_request(request);
  head.mutable_refused()->set_reason(reason);
  send(peer, head);
}

std::optional<std::size_t> ShardServer::Impl::find_table(const std::string& name) const {
  if (name.empty() && tables.size() == 1)
    return 0;
  const auto at = std::find_if(tables.begin(), tables.end(),
                               [&](const ServedState& table) { return table.name == name; });
  return at == tables.end() ? std::nullopt
                            : std::optional(static_cast<std::size_t>(at - tables.begin()));
}

std::string ShardServer::Impl::no_table(const std::string& name) const {
  std::string text = "there is no table \"" + env::legible_line(name.substr(0, kMostNameBytes))
                     + "\" behind this port; name one of ";
  for (const ServedState& table : tables)
    text += (&table == &tables.front() ? "\"" : ", \"") + table.name + "\"";
  return text;
}

void ShardServer::Impl::handle(Message&& message) {
  std::string why;
  const auto head = decode_envelope(message.header, why);
  const auto reject = [&](const ServedState& table) {
    drop(why);
    refuse(message.peer, 0, why + "; the server stores " + describe(table.layout.signature));
  };
  if (!head)
    return reject(tables[0]);
  if (head->has_info())
    return on_info(*head, message.peer);
  const auto table = find_table(head->table());
  if (!table) {
    drop("a message about an unknown table");
    return refuse(message.peer, 0, no_table(head->table()));
  }
  if (head->signature() != tables[*table].hash) {
    why = "a message about different steps or items; give both sides the same signature";
    return reject(tables[*table]);
  }
  dispatch(*head, *table, std::move(message));
}

void ShardServer::Impl::dispatch(const wire::Envelope& head, std::size_t table, Message&& message) {
  if (head.has_insert())
    on_insert(table, head.insert(), std::move(message));
  else if (head.has_sample())
    on_sample(table, head.sample(), message.peer);
  else if (head.has_cancel())
    on_cancel(head.cancel(), message.peer);
  else if (head.has_ping())
    on_ping(table, head.ping(), message.peer);
  else if (head.has_stats())
    on_stats(table, head.stats(), message.peer);
  else if (head.has_update())
    on_update(table, head.update(), message.peer);
  else if (head.has_set_limiter())
    on_set_limiter(table, head.set_limiter(), message.peer);
  else
    drop("a message that only a server sends");
}

ShardServer::ShardServer(env::wire::Context& context, std::vector<ServedTable> tables,
                         const ShardServerOptions& options)
    : impl_(std::make_unique<Impl>(context, std::move(tables), options)) {}

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
