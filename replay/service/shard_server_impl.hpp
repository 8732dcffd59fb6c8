#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "env/wire/socket.hpp"
#include "replay/service/dropped_kinds.hpp"
#include "replay/service/insertion_decoder.hpp"
#include "replay/service/outbox.hpp"
#include "replay/service/shard_server.hpp"
#include "replay/service/wire_format.hpp"

namespace troupe::replay {

/// What a port knows about a writer to one table.
struct WriterState {
  std::string peer;
  std::map<std::uint64_t, bool>
      accepted; // by sequence; false: passed to the owner, but not accepted yet
  std::uint64_t used = 0;
};

/// One of the tables behind a port. Tables of one signature share a decoder, so that the chunks of
/// a writer are in memory only once.
struct ServedState {
  std::string name;
  RowLayout layout;
  std::uint64_t hash = 0;
  ShardHandlers handlers;
  std::optional<TransitionSpec> transitions;
  std::shared_ptr<InsertionDecoder> decoder;
  std::unordered_map<std::uint64_t, WriterState> writers;
};

/// A client's sample that the owner has not answered yet.
struct ServedSample {
  std::size_t table = 0;
  std::shared_ptr<std::atomic<bool>> cancelled;
  Deadline lease; // dropped then unless the client asks about it
};

struct ShardServer::Impl {
  Impl(env::wire::Context& context, std::vector<ServedTable> served, const ShardServerOptions& o);
  ~Impl();

  // The thread's loop, in shard_server.cpp.
  void run(const std::stop_token& stop);
  Deadline tick(); // drops samples whose lease has ended, and calls tick() of all owners
  void drop_abandoned(Deadline now);
  void handle(env::wire::Message&& message);
  void dispatch(const wire::Envelope& head, std::size_t table, env::wire::Message&& message);
  std::optional<std::size_t> find_table(const std::string& name) const;
  std::string no_table(const std::string& name) const; // message for an unknown table
  wire::Envelope head_of(const ServedState& table) const;
  void send(const std::string& peer, const wire::Envelope& head);
  void refuse(const std::string& peer, std::uint64_t request, const std::string& reason);
  void drop(const std::string& why);

  // Handlers for requests of clients, in shard_server_requests.cpp. `table` is an index in
  // `tables`.
  void on_insert(std::size_t table, const wire::Insert& header, env::wire::Message&& message);
  void on_sample(std::size_t table, const wire::SampleRequest& request, const std::string& peer);
  void on_cancel(const wire::Cancel& cancel, const std::string& peer);
  void on_ping(std::size_t table, const wire::Ping& ping, const std::string& peer);
  void on_update(std::size_t table, const wire::UpdatePriorities& update, const std::string& peer);
  void on_set_limiter(std::size_t table, const wire::SetLimiter& change, const std::string& peer);
  void on_stats(std::size_t table, const wire::StatsRequest& request, const std::string& peer);
  void on_info(const wire::Envelope& head, const std::string& peer);
  std::shared_ptr<Reply> reply_to(std::size_t table, const std::string& peer, std::uint64_t request,
                                  const std::string& refusal);

  // Handlers for answers of owners, in shard_server_answers.cpp.
  void deliver(std::vector<Answer> answers);
  void send_items(const Answer& answer);
  bool send_parts(const Answer& answer, std::string& why);
  env::wire::Frame frame_to(const std::string& peer, std::size_t bytes);
  void send_info(const Answer& answer);
  void put_tables(wire::InfoReply& reply) const;

  std::vector<ServedState> tables;
  ShardServerOptions options;
  env::wire::Socket socket;
  std::string endpoint;
  std::shared_ptr<Outbox> outbox;
  std::uint64_t used = 0;
  std::map<std::pair<std::string, std::uint64_t>, ServedSample> waiting_samples; // peer, request
  Deadline lease_due = Deadline::max(); // no lease in `waiting_samples` ends earlier
  /// Bytes of samples in flight to each peer, except in shared memory.
  std::unordered_map<std::string, std::shared_ptr<std::atomic<std::size_t>>> unread;
  DroppedKinds drops;
  std::int64_t cut_off = 0; // connections counted in `garbage`
  bool told_of_strangers = false;
  std::atomic<std::int64_t> garbage = 0;
  std::atomic<std::int64_t> insertions = 0;
  std::atomic<std::int64_t> duplicates = 0;
  std::atomic<std::int64_t> samples = 0;
  std::atomic<std::int64_t> shared = 0;
  std::jthread thread; // declared last, because it uses all of the above
};

} // namespace troupe::replay
