#include <chrono>
#include <exception>

#include "replay/service/shard_server_impl.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::replay {

using env::wire::Frame;
using env::wire::Message;

namespace {

/// Memory that counts towards `sum` until ZeroMQ has passed it to the operating system.
struct Counted {
  Counted(std::size_t bytes, std::shared_ptr<std::atomic<std::size_t>> of)
      : memory(std::make_unique_for_overwrite<std::byte[]>(bytes)),
        size(bytes),
        sum(std::move(of)) {
    *sum += size;
  }
  ~Counted() { *sum -= size; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  std::unique_ptr<std::byte[]> memory;
  std::size_t size;
  std::shared_ptr<std::atomic<std::size_t>> sum;
};

} // namespace

void ShardServer::Impl::deliver(std::vector<Answer> answers) {
  using WriterOfTable = std::pair<std::size_t, std::uint64_t>;
  std::map<WriterOfTable, wire::Envelope> accepted;
  for (Answer& answer : answers) {
    ServedState& table = tables[answer.table];
    switch (answer.kind) {
    case Answer::Kind::accepted:
    case Answer::Kind::refused_insertion: {
      const auto from = table.writers.find(answer.writer_id);
      if (from == table.writers.end())
        break;
      if (answer.kind == Answer::Kind::refused_insertion) {
        from->second.accepted.erase(answer.number); // the client learns this from its next ping
        break;
      }
      from->second.accepted[answer.number] = true;
      const auto [at, added] =
          accepted.try_emplace({answer.table, answer.writer_id}, head_of(table));
      at->second.mutable_accepted()->set_writer(answer.writer_id);
      at->second.mutable_accepted()->add_sequences(answer.number);
      break;
    }
    case Answer::Kind::items:
      send_items(answer);
      break;
    case Answer::Kind::stats: {
      wire::Envelope head = head_of(table);
      head.mutable_stats_reply()->set_request(answer.number);
      put(answer.stats, *head.mutable_stats_reply());
      send(answer.peer, head);
      break;
    }
    case Answer::Kind::info:
      send_info(answer);
      break;
    case Answer::Kind::done: {
      wire::Envelope head = head_of(table);
      head.mutable_done()->set_request(answer.number);
      send(answer.peer, head);
      break;
    }
    case Answer::Kind::refused:
      refuse(answer.peer, answer.number, answer.text);
      break;
    }
  }
  for (const auto& [of, head] : accepted)
    send(tables[of.first].writers.at(of.second).peer, head);
}

void ShardServer::Impl::send_items(const Answer& answer) {
  if (waiting_samples.erase({answer.peer, answer.number}) == 0)
    return; // cancelled
  if (answer.items.empty()) {
    refuse(answer.peer, answer.number,
           answer.text.empty() ? "the shard gave no sample: it is stopping" : answer.text);
    return;
  }
  std::string why;
  bool sent = false;
  try {
    sent = send_parts(answer, why);
  } catch (const std::exception& e) { // a disk error, or out of memory
    why = std::string("its items cannot be read: ") + e.what();
  }
  if (sent)
    ++samples;
  else
    refuse(answer.peer, answer.number, why);
}

Frame ShardServer::Impl::frame_to(const std::string& peer, std::size_t bytes) {
  Frame frame = socket.frame(bytes, peer);
  if (frame.shared_block())
    return frame; // bounded by the size of the shared memory
  auto& sum = unread[peer];
  if (!sum)
    sum = std::make_shared<std::atomic<std::size_t>>(0);
  const auto counted = std::make_shared<Counted>(bytes, sum);
  return Frame::view(std::span<const std::byte>(counted->memory.get(), bytes), counted);
}

/// Sends a batch in parts. Returns false and sets `why` if the rest of it cannot be sent to this
/// peer.
bool ShardServer::Impl::send_parts(const Answer& answer, std::string& why) {
  const ServedState& table = tables[answer.table];
  std::erase_if(unread, [](const auto& peer) { return *peer.second == 0; });
  const auto frame = [&](std::size_t bytes) { return frame_to(answer.peer, bytes); };
  std::span<const Item> left(answer.items);
  std::int64_t first = 0;
  while (!left.empty()) {
    if (const auto sum = unread.find(answer.peer);
        sum != unread.end() && *sum->second > options.max_unread_bytes) {
      why = std::to_string(*sum->second)
            + " bytes of samples wait for this client to read them, max_unread_bytes is "
            + std::to_string(options.max_unread_bytes) + ": read them, or ask for fewer items";
      return false;
    }
    const std::size_t count = part_size(table.layout, left, answer.part_bytes);
    Message message =
        encode_sample(table.layout, table.hash, answer.number, first, left.first(count), frame);
    message.peer = answer.peer;
    socket.send(std::move(message), std::chrono::steady_clock::now());
    left = left.subspan(count);
    first += static_cast<std::int64_t>(count);
  }
  return true;
}

void ShardServer::Impl::put_tables(wire::InfoReply& reply) const {
  for (const ServedState& table : tables)
    reply.add_tables(table.name);
}

void ShardServer::Impl::send_info(const Answer& answer) {
  const ServedState& table = tables[answer.table];
  wire::Envelope head = head_of(table);
  wire::InfoReply& reply = *head.mutable_info_reply();
  reply.set_request(answer.number);
  put_tables(reply);
  put(table.layout.signature, *reply.mutable_signature());
  reply.set_fingerprint(table.hash);
  if (answer.config)
    put(*answer.config, *reply.mutable_config());
  put(answer.stats, *reply.mutable_stats());
  reply.set_why_waiting(answer.text);
  send(answer.peer, head);
}

} // namespace troupe::replay
