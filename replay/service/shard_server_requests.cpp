#include <algorithm>
#include <chrono>

#include "replay/batch/gather.hpp"
#include "replay/chunks/remembered.hpp"
#include "replay/service/shard_server_impl.hpp"
#include "replay/table/selector.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::replay {

namespace {

using env::wire::Message;

constexpr std::size_t kRememberedSequences = 1024; // per writer
constexpr int kMostServedSamples = 4096;           // sequences in one ping
constexpr std::uint64_t kMostPatienceMs = std::uint64_t{1} << 40;

/// Returns a function that tells a client that its request is done or why it was refused.
std::function<void(const std::string&)> done_or_refused(std::shared_ptr<Reply> reply) {
  return [reply = std::move(reply)](const std::string& error) {
    reply->answer(
        {.kind = error.empty() ? Answer::Kind::done : Answer::Kind::refused, .text = error});
  };
}

/// Examines only the first of consecutive items that have the same shape and size.
bool are_transitions(const TransitionSpec& spec, const std::vector<Item>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    const Item& before = items[i == 0 ? 0 : i - 1];
    const bool is_known = i > 0 && item.shape == before.shape && item.rows == before.rows
                          && item.history == before.history;
    if (!is_known && !is_transition(spec, item))
      return false;
  }
  return true;
}

} // namespace

void ShardServer::Impl::on_insert(std::size_t table, const wire::Insert& header,
                                  Message&& message) {
  ServedState& to = tables[table];
  WriterState& from = remember(to.writers, header.writer(), options.max_writers, ++used);
  from.peer = message.peer;
  const auto known = from.accepted.find(header.sequence());
  // Repeated insertions are complete, so this one comes from another writer with the same id.
  if (header.sequence() == 1 && !header.complete()
      && (known != from.accepted.end()
          || (to.handlers.has_inserted && to.handlers.has_inserted(header.writer(), 1)))) {
    drop("the first insertion of a writer whose id was used before");
    refuse(message.peer, 0,
           "writer " + std::to_string(header.writer())
               + " has inserted into this table before, so its new insertions would be dropped as "
                 "duplicates; give each writer another id, also after a restart of its program");
    return;
  }
  if (known != from.accepted.end()) {
    ++duplicates;
    if (known->second)
      outbox->put({.table = table, .writer_id = header.writer(), .number = header.sequence()});
    return; // an insertion that still waits is acknowledged once it is accepted
  }
  InsertionPtr insertion;
  std::string why;
  switch (to.decoder->decode(header, message.frames, insertion, why)) {
  case InsertionDecoder::Result::garbage:
    drop(why);
    refuse(message.peer, 0, why);
    return;
  case InsertionDecoder::Result::missing: {
    wire::Envelope head = head_of(to);
    head.mutable_missing()->set_writer(header.writer());
    head.mutable_missing()->set_sequence(header.sequence());
    send(message.peer, head);
    return;
  }
  case InsertionDecoder::Result::insertion:
    break;
  }
  why = too_large(to.layout, *insertion, options.max_frame_bytes);
  if (why.empty() && to.transitions && !are_transitions(*to.transitions, insertion->items))
    why = "items that are not " + to.layout.signature.items;
  if (!why.empty()) {
    drop(why);
    refuse(message.peer, 0, why);
    return;
  }
  from.accepted.emplace(header.sequence(), false);
  while (from.accepted.size() > kRememberedSequences)
    from.accepted.erase(from.accepted.begin());
  ++insertions;
  auto reply = std::make_shared<Reply>(outbox, Answer{.kind = Answer::Kind::refused_insertion,
                                                      .table = table,
                                                      .writer_id = header.writer(),
                                                      .number = header.sequence()});
  to.handlers.insert(std::move(insertion),
                     [reply] { reply->answer({.kind = Answer::Kind::accepted}); });
}

void ShardServer::Impl::on_sample(std::size_t table, const wire::SampleRequest& request,
                                  const std::string& peer) {
  if (request.count() < 1 || request.count() > options.max_sample) {
    refuse(peer, request.request(),
           "a sample of " + std::to_string(request.count()) + " items: 1 to "
               + std::to_string(options.max_sample) + " are allowed");
    return;
  }
  if (waiting_samples.size() >= options.max_waiting_samples) {
    refuse(peer, request.request(),
           std::to_string(waiting_samples.size())
               + " samples are already waiting; ask again later");
    return;
  }
  const Deadline now = std::chrono::steady_clock::now();
  const auto [waiting, added] = waiting_samples.try_emplace({peer, request.request()});
  if (!added)
    return;
  waiting->second = {.table = table,
                     .cancelled = std::make_shared<std::atomic<bool>>(false),
                     .lease = now + options.sample_lease};
  lease_due = std::min(lease_due, waiting->second.lease);
  const std::uint64_t part_bytes =
      request.part_bytes() == 0
          ? kPartBytes
          : std::min<std::uint64_t>(request.part_bytes(), options.max_frame_bytes);
  auto reply = std::make_shared<Reply>(outbox, Answer{.kind = Answer::Kind::items,
                                                      .table = table,
                                                      .peer = peer,
                                                      .number = request.request(),
                                                      .part_bytes = part_bytes});
  WaitOptions wait;
  wait.who = "a remote client";
  wait.cancelled = waiting->second.cancelled;
  wait.refused = [reply](const std::string& why) {
    reply->answer({.kind = Answer::Kind::items, .text = why});
  };
  if (request.patience_ms() > 0)
    wait.deadline = now
                    + std::chrono::milliseconds(
                        std::min<std::uint64_t>(request.patience_ms(), kMostPatienceMs));
  tables[table].handlers.sample(
      request.count(),
      [reply](std::vector<Item> items) {
        reply->answer({.kind = Answer::Kind::items, .items = std::move(items)});
      },
      std::move(wait));
}

void ShardServer::Impl::on_cancel(const wire::Cancel& cancel, const std::string& peer) {
  const auto at = waiting_samples.find({peer, cancel.request()});
  if (at == waiting_samples.end())
    return; // its answer is on its way
  *at->second.cancelled = true;
  const auto& tick_owner = tables[at->second.table].handlers.tick;
  waiting_samples.erase(at);
  if (tick_owner) // before the next request, which it might keep waiting
    tick_owner(std::chrono::steady_clock::now());
}

/// Returns a reply that sends the given refusal unless it is answered.
std::shared_ptr<Reply> ShardServer::Impl::reply_to(std::size_t table, const std::string& peer,
                                                   std::uint64_t request,
                                                   const std::string& refusal) {
  return std::make_shared<Reply>(outbox, Answer{.kind = Answer::Kind::refused,
                                                .table = table,
                                                .peer = peer,
                                                .number = request,
                                                .text = refusal});
}

void ShardServer::Impl::on_update(std::size_t table, const wire::UpdatePriorities& update,
                                  const std::string& peer) {
  const auto& priorities = update.priorities();
  const ShardHandlers& handlers = tables[table].handlers;
  if (!handlers.update)
    return refuse(peer, update.request(), "this shard accepts no priorities");
  if (update.keys_size() != priorities.size() || priorities.size() > options.max_sample
      || !std::all_of(priorities.begin(), priorities.end(), valid_priority))
    return refuse(peer, update.request(),
                  std::to_string(priorities.size()) + " priorities for "
                      + std::to_string(update.keys_size())
                      + " keys: one of 0 to 1e12 for each of at" + " most "
                      + std::to_string(options.max_sample) + " is allowed");
  handlers.update({update.keys().begin(), update.keys().end()},
                  {priorities.begin(), priorities.end()},
                  done_or_refused(reply_to(table, peer, update.request(),
                                           "the shard accepted no priorities: it is stopping")));
}

void ShardServer::Impl::on_set_limiter(std::size_t table, const wire::SetLimiter& change,
                                       const std::string& peer) {
  const ShardHandlers& handlers = tables[table].handlers;
  if (!handlers.set_limiter)
    return refuse(peer, change.request(),
                  "clients cannot change this shard's rate limiter; its owner does");
  handlers.set_limiter(
      limiter_of(change.limiter()),
      done_or_refused(reply_to(table, peer, change.request(),
                               "the shard accepted no rate limiter: it is stopping")));
}

void ShardServer::Impl::on_ping(std::size_t table, const wire::Ping& ping,
                                const std::string& peer) {
  if (ping.writers_size() != ping.sequences_size() || ping.writers_size() > kMostServedSamples
      || (ping.table_places_size() != 0 && ping.table_places_size() != ping.writers_size())) {
    drop("a ping with the wrong parts");
    return;
  }
  // Sends the answers of the owners first, so that the pong never overtakes them.
  deliver(outbox->take());
  std::vector<std::optional<std::size_t>> named;
  for (const std::string& name : ping.tables())
    named.push_back(find_table(name));
  wire::Envelope head = head_of(tables[table]);
  wire::Pong& pong = *head.mutable_pong();
  pong.set_ping(ping.ping());
  for (int i = 0; i < ping.writers_size(); ++i) {
    std::optional<std::size_t> of = table;
    if (ping.table_places_size() != 0)
      of = ping.table_places(i) < named.size() ? named[ping.table_places(i)] : std::nullopt;
    char state = 0;
    if (of) {
      auto& writers = tables[*of].writers;
      if (const auto from = writers.find(ping.writers(i)); from != writers.end()) {
        from->second.peer = peer;
        const auto at = from->second.accepted.find(ping.sequences(i));
        if (at != from->second.accepted.end())
          state = at->second ? 2 : 1;
      }
    }
    pong.mutable_states()->push_back(state);
  }
  const auto sample = waiting_samples.find({peer, ping.sample_request()});
  pong.set_sample_waits(sample != waiting_samples.end());
  if (sample != waiting_samples.end())
    sample->second.lease = std::chrono::steady_clock::now() + options.sample_lease;
  send(peer, head);
}

void ShardServer::Impl::on_stats(std::size_t table, const wire::StatsRequest& request,
                                 const std::string& peer) {
  const auto reply = reply_to(table, peer, request.request(), "the shard gave no statistics");
  tables[table].handlers.report([reply](const ShardReport& report) {
    reply->answer({.kind = Answer::Kind::stats, .stats = report.stats});
  });
}

void ShardServer::Impl::on_info(const wire::Envelope& head, const std::string& peer) {
  const std::uint64_t request = head.info().request();
  const auto table = find_table(head.table());
  if (!table && !head.table().empty())
    return refuse(peer, request, no_table(head.table()));
  if (!table) {
    wire::Envelope names = envelope(0);
    names.mutable_info_reply()->set_request(request);
    put_tables(*names.mutable_info_reply());
    return send(peer, names);
  }
  const auto reply =
      reply_to(*table, peer, request, "the shard does not describe itself: it is stopping");
  tables[*table].handlers.report([reply](const ShardReport& report) {
    reply->answer({.kind = Answer::Kind::info,
                   .stats = report.stats,
                   .config = report.config,
                   .text = report.why_waiting});
  });
}

} // namespace troupe::replay
