#include "actors/roles/prefetch_actor.hpp"

#include <algorithm>

#include "actors/protocol/system.hpp"
#include "env/text/joined.hpp"
#include "replay/table/importance.hpp"

namespace troupe::actors {

const char* PrefetchState::name = "prefetch";

namespace {

/// How long the actor waits for a sample before it reads its mailbox.
constexpr std::chrono::milliseconds kSampleWait{10};

using PrefetchSelf = PrefetchActor::stateful_pointer<PrefetchState>;

replay::ShardAddress address_of(std::size_t shard, const std::string& endpoint) {
  return {.name = "replay " + std::to_string(shard), .endpoint = endpoint};
}

void weigh(const PrefetchOptions& options, BatchBuffer& buffer) {
  std::vector<replay::ShardRows> parts;
  for (const BatchPart& part : buffer.parts)
    parts.push_back({part.rows, buffer.view.table_items[static_cast<std::size_t>(part.first_row)]});
  at::Tensor& tensor = buffer.tensors.at("weight");
  const std::span<float> weight(tensor.mutable_data_ptr<float>(),
                                static_cast<std::size_t>(tensor.numel()));
  const double exponent = replay::annealed_exponent(options.importance_exponent,
                                                    options.importance_updates, buffer.number);
  replay::importance_weights(buffer.view.probability, parts, exponent, weight);
  replay::normalise_by_largest(weight);
}

void deliver_ready(PrefetchSelf self) {
  auto& state = self->state;
  while (!state.pending.empty() && state.pending.front().missing == 0) {
    caf::anon_send(state.options.learner, batch_atom_v, std::move(state.pending.front().buffer));
    state.pending.pop_front();
  }
}

void answered(PrefetchSelf self, std::int64_t number, std::size_t shard, std::int64_t first_row,
              const SamplePtr& sample) {
  auto& state = self->state;
  const auto at = std::find_if(state.pending.begin(), state.pending.end(),
                               [&](const auto& p) { return p.buffer->number == number; });
  if (at == state.pending.end())
    return;
  at->shards.erase(shard);
  const collectives::Timeline::Span span(state.options.timeline.get(), "gather batch");
  quit_on_fault(self, [&] {
    (*state.gather)(state.options.transitions, sample->items, at->buffer->view, first_row);
    if (--at->missing == 0 && state.options.weighted)
      weigh(state.options, *at->buffer);
    deliver_ready(self);
  });
}

void look_again(PrefetchSelf self) {
  if (!std::exchange(self->state.looking, true))
    self->send(self, tick_atom_v);
}

/// Receives the oldest batch, or the part that has arrived, from shards of other processes.
void receive(PrefetchSelf self) {
  auto& state = self->state;
  state.looking = false;
  if (state.pending.empty())
    return;
  auto& next = state.pending.front();
  const collectives::Timeline::Span span(state.options.timeline.get(), "receive batch");
  try {
    if (state.client->sample(state.options.rows, next.buffer->view, 0,
                             replay::Deadline::clock::now() + kSampleWait)) {
      state.silence.clear();
      next.missing = 0;
      if (state.options.weighted)
        weigh(state.options, *next.buffer);
      deliver_ready(self);
    }
  } catch (const replay::ShardSilence& silence) { // it may come back, or be restarted elsewhere
    state.silence = silence.what();
  }
  look_again(self);
}

/// Makes the next free buffer the pending batch number `asked`. Returns null if its items are used
/// again; otherwise the buffer must be filled.
BatchBuffer* begin_batch(PrefetchState& state) {
  state.pending.push_back({.buffer = std::move(state.free.back())});
  state.free.pop_back();
  BatchBuffer& buffer = *state.pending.back().buffer;
  buffer.number = state.asked++;
  if (buffer.uses_left > 0) {
    --buffer.uses_left;
    return nullptr;
  }
  buffer.uses_left = state.options.item_uses - 1;
  buffer.parts.clear();
  return &buffer;
}

void ask_clients(PrefetchSelf self) {
  auto& state = self->state;
  while (state.asked < state.granted && !state.free.empty()) {
    BatchBuffer* const buffer = begin_batch(state);
    if (buffer == nullptr)
      continue;
    buffer->parts.push_back({.shard = 0, .first_row = 0, .rows = state.options.rows});
    state.pending.back().missing = 1;
  }
  deliver_ready(self);
  if (!state.pending.empty())
    look_again(self);
}

std::int64_t most_unacknowledged(const PrefetchState& state) {
  return (state.options.ahead + 1) * std::ssize(state.options.shards);
}

void ask(PrefetchSelf self) {
  auto& state = self->state;
  if (state.client)
    return ask_clients(self);
  while (state.asked < state.granted && !state.free.empty()
         && state.unacknowledged <= most_unacknowledged(state)) {
    BatchBuffer* const buffer = begin_batch(state);
    if (buffer == nullptr)
      continue;
    const std::int64_t number = buffer->number;
    const auto request = static_cast<std::uint64_t>(state.requested++);
    const auto shards = static_cast<std::int64_t>(state.options.shards.size());
    std::int64_t first_row = 0;
    for (std::int64_t i = 0; i < shards; ++i) {
      const std::int64_t turn =
          (i + number) % shards; // which shards give one more row if the rows do not divide evenly
      const std::int64_t rows =
          state.options.rows / shards + (turn < state.options.rows % shards ? 1 : 0);
      if (rows == 0)
        continue;
      ++state.pending.back().missing;
      state.pending.back().shards.insert(static_cast<std::size_t>(i));
      buffer->parts.push_back({static_cast<std::size_t>(i), first_row, rows});
      self->request(state.options.shards[static_cast<std::size_t>(i)], caf::infinite, sample_atom_v,
                    static_cast<std::uint32_t>(state.options.replica), request,
                    static_cast<std::uint32_t>(rows))
          .then([self, number, shard = static_cast<std::size_t>(i), first_row](
                    const SamplePtr& sample) { answered(self, number, shard, first_row, sample); },
                [self](caf::error& error) {
                  self->quit(caf::make_error(Fault::lost, "no sample from replay: "
                                                              + explain(self->system(), error)));
                });
      first_row += rows;
    }
  }
  deliver_ready(self);
}

std::string waiting(const PrefetchState& state) {
  if (state.pending.empty())
    return state.unacknowledged > 0 ? "waiting until replay accepts priorities" : "";
  if (state.client)
    return "waiting for samples from replay"
           + (state.silence.empty() ? state.silence : ": " + state.silence);
  return "waiting for samples from replay " + env::joined(state.pending.front().shards);
}

/// Buffers that are neither free nor being filled.
std::int64_t batches_of_learner(const PrefetchState& state) {
  return state.options.ahead + 1 - std::ssize(state.free) - std::ssize(state.pending);
}

void answer_flushes(PrefetchState& state) {
  if (state.unacknowledged > 0)
    return;
  for (auto& promise : state.flushing)
    promise.deliver(done_atom_v);
  state.flushing.clear();
}

/// Sends each row's priority to the shard that the row came from.
void route_priorities(PrefetchSelf self, BatchBuffer& buffer) {
  auto& state = self->state;
  if (state.client)
    state.client->update_priorities(buffer.view.key, std::exchange(buffer.priorities, {}),
                                    replay::Deadline::clock::now() + kRequestDeadline);
  for (std::size_t i = 0; i < buffer.parts.size() && !state.client; ++i) {
    const BatchPart& part = buffer.parts[i];
    auto made = std::make_shared<Priorities>();
    const auto first = static_cast<std::size_t>(part.first_row);
    const auto count = static_cast<std::size_t>(part.rows);
    const auto keys = buffer.view.key.subspan(first, count);
    made->keys.assign(keys.begin(), keys.end());
    made->values.assign(buffer.priorities.begin() + part.first_row,
                        buffer.priorities.begin() + part.first_row + part.rows);
    ++state.unacknowledged;
    self->request(state.options.shards[part.shard], caf::infinite, update_atom_v,
                  static_cast<std::uint32_t>(state.options.replica),
                  static_cast<std::uint64_t>(buffer.number - state.options.start),
                  PrioritiesPtr(std::move(made)))
        .then(
            [self](done_atom) {
              --self->state.unacknowledged;
              answer_flushes(self->state);
              ask(self);
            },
            [self](caf::error& error) {
              self->quit(caf::make_error(Fault::lost, "replay accepted no priorities: "
                                                          + explain(self->system(), error)));
            });
  }
  buffer.priorities.clear();
}

} // namespace

PrefetchActor::behavior_type prefetch_actor(PrefetchSelf self, PrefetchOptions options) {
  auto& state = self->state;
  state.options = std::move(options);
  state.asked = state.granted = state.options.start;
  state.gather = std::make_unique<replay::ParallelGather>(state.options.threads);
  if (const auto& remote = state.options.remote; !remote.endpoints.empty()) {
    std::vector<replay::ShardAddress> addresses;
    for (std::size_t i = 0; i < remote.endpoints.size(); ++i)
      addresses.push_back(address_of(i, remote.endpoints[i]));
    state.client = std::make_unique<replay::ShardedClient>(
        *remote.context, state.options.transitions, addresses,
        replay::ShardedClientOptions{.seed = state.options.seed});
  }
  for (int i = 0; i <= state.options.ahead; ++i)
    state.free.push_back(std::make_shared<BatchBuffer>(state.options.transitions,
                                                       state.options.rows, state.options.feedback));
  return {
      [self](grant_atom, std::int64_t updates) {
        self->state.granted = updates;
        ask(self);
      },
      [self](batch_atom, BatchPtr& buffer) {
        quit_on_fault(self, [&] {
          if (!buffer->priorities.empty())
            route_priorities(self, *buffer);
          self->state.free.push_back(std::move(buffer));
          ask(self);
        });
      },
      [self](wire_atom, std::uint32_t shard, const std::string& endpoint) {
        const auto address = address_of(shard, endpoint);
        self->state.client->remove(address.name);
        self->state.client->add(address);
      },
      [self](tick_atom) { quit_on_fault(self, [self] { receive(self); }); },
      [self](report_atom) -> caf::result<std::string, std::int64_t> {
        return {waiting(self->state), batches_of_learner(self->state)};
      },
      [self](flush_atom) -> caf::result<done_atom> {
        auto promise = self->make_response_promise<done_atom>();
        self->state.flushing.push_back(promise);
        answer_flushes(self->state);
        return promise;
      },
  };
}

} // namespace troupe::actors
