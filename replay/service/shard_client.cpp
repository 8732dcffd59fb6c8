#include <algorithm>
#include <stdexcept>
#include <utility>

#include "replay/batch/gather.hpp"
#include "replay/service/shard_client_impl.hpp"
#include "replay/table/selector.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::replay {

using Clock = std::chrono::steady_clock;

ShardClient::ShardClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ShardClient::ShardClient(env::wire::Context& context, const std::string& endpoint,
                         const Signature& signature, const ShardClientOptions& options)
    : impl_((check(signature), std::make_unique<Impl>(context, endpoint, options))) {
  impl_->set_signature(signature);
}

ShardClient::ShardClient(env::wire::Context& context, const std::string& endpoint,
                         const TransitionSpec& spec, const ShardClientOptions& options)
    : ShardClient(context, endpoint, Signature((check(spec), spec)), options) {
  impl_->spec = spec;
}

ShardClient ShardClient::connect(env::wire::Context& context, const std::string& endpoint,
                                 Deadline deadline, const ShardClientOptions& options) {
  ShardClient made(std::make_unique<Impl>(context, endpoint, options));
  const ShardInfo info = made.info(deadline);
  if (!info.signature.columns.empty()) {
    made.impl_->set_signature(info.signature);
    return made;
  }
  std::string names;
  for (const std::string& name : info.tables)
    names += (names.empty() ? "\"" : ", \"") + name + "\"";
  throw std::invalid_argument("the replay port at " + endpoint + " has several tables; name one of "
                              + names);
}

ShardInfo ShardClient::ask(env::wire::Context& context, const std::string& endpoint,
                           Deadline deadline, const ShardClientOptions& options) {
  return ShardClient(std::make_unique<Impl>(context, endpoint, options)).info(deadline);
}

ShardClient::~ShardClient() = default;
ShardClient::ShardClient(ShardClient&& other) noexcept = default;
ShardClient& ShardClient::operator=(ShardClient&& other) noexcept = default;

const Signature& ShardClient::signature() const {
  return impl_->layout->signature;
}

bool ShardClient::insert(InsertionPtr insertion, Deadline deadline, const std::string& table) {
  Impl& my = *impl_;
  if (const std::string why = too_large(*my.layout, *insertion, my.options.max_frame_bytes);
      !why.empty())
    throw std::invalid_argument("an insertion into the replay shard at " + my.endpoint + ": "
                                + why);
  const Impl::Key key{table.empty() ? my.options.table : table, insertion->writer_id,
                      insertion->sequence};
  if (!my.wait_until([&] { return my.has_room(key); }, deadline,
                     "room in the window of insertions"))
    return false;
  my.send_insertion(key, *insertion, false);
  my.in_flight.insert_or_assign(key, std::move(insertion));
  return true;
}

std::size_t ShardClient::in_flight() const {
  return impl_->in_flight.size();
}

void ShardClient::move(const std::string& endpoint) {
  const auto former =
      std::exchange(impl_, std::make_unique<Impl>(impl_->context, endpoint, impl_->options));
  impl_->spec = former->spec;
  impl_->layout = former->layout;
  impl_->hash = former->hash;
  impl_->in_flight = std::move(former->in_flight);
  for (const auto& [key, insertion] : impl_->in_flight)
    impl_->send_insertion(key, *insertion, true);
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
  if (!my.spec)
    throw std::invalid_argument(
        "a batch of transitions was requested from a client that knows only columns; make it with "
        "a TransitionSpec, or sample a ColumnBatch");
  check(*my.spec, batch, first_row, count);
  my.want_sample(count, patience, kPartBytes);
  // Writes parts to the batch while later ones are in flight. The parts of an earlier call
  // are written again, because its batch may be gone.
  std::size_t written = 0;
  const auto done = [&] {
    for (; written < my.pieces.size(); ++written) {
      const Impl::SamplePiece& piece = my.pieces[written];
      if (!decode_sample(*my.spec, *my.layout, piece.header, piece.frames, batch,
                         first_row + piece.header.first())) {
        my.end_sample();
        my.fail("sent a damaged batch");
      }
    }
    return !my.sample_refusal.empty() || my.sample_received == my.sample_count;
  };
  if (!my.wait_until(done, deadline, "a sample"))
    return std::nullopt;
  my.end_sample();
  return count;
}

std::optional<ColumnBatch> ShardClient::sample(std::int64_t count, Deadline deadline,
                                               std::chrono::milliseconds patience) {
  Impl& my = *impl_;
  my.want_sample(count, patience, my.options.part_bytes);
  const auto done = [&] {
    return !my.sample_refusal.empty() || my.sample_received == my.sample_count;
  };
  if (!my.wait_until(done, deadline, "a sample"))
    return std::nullopt;
  std::deque<Impl::SamplePiece> pieces = std::move(my.pieces);
  my.end_sample();
  ColumnBatch batch;
  batch.parts.resize(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (!decode_columns(*my.layout, pieces[i].header, std::move(pieces[i].frames), batch.parts[i]))
      my.fail("sent a damaged batch");
  return batch;
}

ShardInfo ShardClient::info(Deadline deadline) {
  wire::Envelope head = impl_->head();
  head.mutable_info()->set_request(++impl_->next_number);
  impl_->ask(std::move(head), deadline, "what it stores");
  return impl_->info;
}

void ShardClient::set_limiter(const RateLimiterConfig& limiter, Deadline deadline) {
  wire::Envelope head = impl_->head();
  head.mutable_set_limiter()->set_request(++impl_->next_number);
  put(limiter, *head.mutable_set_limiter()->mutable_limiter());
  impl_->ask(std::move(head), deadline, "the rate limiter to be accepted");
}

wire::Envelope ShardClient::Impl::stats_question() {
  wire::Envelope asking = head();
  asking.mutable_stats()->set_request(++next_number);
  return asking;
}

wire::Envelope ShardClient::Impl::update_question(std::span<const std::uint64_t> keys,
                                                  std::span<const double> priorities) {
  check_counts(keys.size(), priorities.size());
  wire::Envelope asking = head();
  wire::UpdatePriorities& update = *asking.mutable_update();
  update.set_request(++next_number);
  update.mutable_keys()->Add(keys.begin(), keys.end());
  update.mutable_priorities()->Add(priorities.begin(), priorities.end());
  return asking;
}

TableStats ShardClient::stats(Deadline deadline) {
  impl_->ask(impl_->stats_question(), deadline, "its statistics");
  return impl_->stats;
}

void ShardClient::update_priorities(std::span<const std::uint64_t> keys,
                                    std::span<const double> priorities, Deadline deadline) {
  impl_->ask(impl_->update_question(keys, priorities), deadline, "priorities to be accepted");
}

void ShardClient::request_sample(std::int64_t count, std::chrono::milliseconds patience) {
  impl_->cancel_sample();
  impl_->want_sample(count, patience, kPartBytes);
}

void ShardClient::cancel_sample() {
  impl_->cancel_sample();
}

void ShardClient::ask_stats() {
  impl_->ask(impl_->stats_question());
}

void ShardClient::ask_update(std::span<const std::uint64_t> keys,
                             std::span<const double> priorities) {
  impl_->ask(impl_->update_question(keys, priorities));
}

bool ShardClient::answered() {
  poll();
  return impl_->answered();
}

const TableStats& ShardClient::last_stats() const {
  return impl_->stats;
}

std::chrono::milliseconds ShardClient::silent() const {
  return impl_->silent(Clock::now());
}

void ShardClient::wait(Deadline deadline) {
  impl_->socket.wait(deadline);
}

} // namespace troupe::replay
