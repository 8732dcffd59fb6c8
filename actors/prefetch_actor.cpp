#include "actors/prefetch_actor.hpp"

#include <algorithm>
#include <cstring>

#include "actors/system.hpp"
#include "replay/importance.hpp"

namespace troupe::actors {

const char* PrefetchState::name = "prefetch";

namespace {

using Self = PrefetchActor::stateful_pointer<PrefetchState>;

template <class T>
void copy_rows(std::span<T> to, const std::vector<T>& from, std::int64_t first_row,
               std::int64_t rows, std::int64_t all) {
  const std::size_t width = to.size() / static_cast<std::size_t>(all);
  if (from.size() != width * static_cast<std::size_t>(rows))
    throw std::runtime_error("a shard answered with rows of another shape");
  std::memcpy(to.data() + static_cast<std::size_t>(first_row) * width, from.data(),
              from.size() * sizeof(T));
}

void fill(PrefetchState& state, BatchBuffer& buffer, std::int64_t first_row, std::int64_t rows,
          const Sample& sample) {
  if (!sample.items.empty()) {
    (*state.gather)(state.options.transitions, sample.items, buffer.view, first_row);
    return;
  }
  const std::int64_t all = state.options.rows;
  copy_rows(buffer.view.observation, sample.observation, first_row, rows, all);
  copy_rows(buffer.view.next_observation, sample.next_observation, first_row, rows, all);
  copy_rows(buffer.view.action, sample.action, first_row, rows, all);
  copy_rows(buffer.view.reward, sample.reward, first_row, rows, all);
  copy_rows(buffer.view.discount, sample.discount, first_row, rows, all);
  copy_rows(buffer.view.key, sample.key, first_row, rows, all);
  if (!state.options.feedback)
    return;
  copy_rows(buffer.view.probability, sample.probability, first_row, rows, all);
  copy_rows(buffer.view.table_items, sample.table_items, first_row, rows, all);
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

void deliver_ready(Self self) {
  auto& state = self->state;
  while (!state.pending.empty() && state.pending.front().missing == 0) {
    caf::anon_send(state.options.learner, batch_atom_v, std::move(state.pending.front().buffer));
    state.pending.pop_front();
  }
}

void answered(Self self, std::int64_t number, std::size_t shard, std::int64_t first_row,
              std::int64_t rows, const SamplePtr& sample) {
  auto& state = self->state;
  const auto at = std::find_if(state.pending.begin(), state.pending.end(),
                               [&](const auto& p) { return p.buffer->number == number; });
  if (at == state.pending.end())
    return;
  at->shards.erase(shard);
  try {
    fill(state, *at->buffer, first_row, rows, *sample);
    if (--at->missing == 0 && state.options.weighted)
      weigh(state.options, *at->buffer);
  } catch (const std::exception& e) {
    self->quit(failure(e));
    return;
  }
  deliver_ready(self);
}

std::int64_t most_unacknowledged(const PrefetchState& state) {
  return (state.options.ahead + 1) * std::ssize(state.options.shards);
}

void ask(Self self) {
  auto& state = self->state;
  while (state.asked < state.granted && !state.free.empty()
         && state.unacknowledged <= most_unacknowledged(state)) {
    const std::int64_t number = state.asked++;
    BatchPtr buffer = std::move(state.free.back());
    state.free.pop_back();
    buffer->number = number;
    buffer->parts.clear();
    const auto shards = static_cast<std::int64_t>(state.options.shards.size());
    state.pending.push_back({.buffer = std::move(buffer)});
    std::int64_t first_row = 0;
    for (std::int64_t i = 0; i < shards; ++i) {
      const std::int64_t turn =
          (i + number) % shards; // who gives one more when the rows do not divide
      const std::int64_t rows =
          state.options.rows / shards + (turn < state.options.rows % shards ? 1 : 0);
      if (rows == 0)
        continue;
      ++state.pending.back().missing;
      state.pending.back().shards.insert(static_cast<std::size_t>(i));
      state.pending.back().buffer->parts.push_back({static_cast<std::size_t>(i), first_row, rows});
      self->request(state.options.shards[static_cast<std::size_t>(i)], kRequestDeadline,
                    sample_atom_v, static_cast<std::uint32_t>(state.options.replica),
                    static_cast<std::uint64_t>(number - state.options.start),
                    static_cast<std::uint32_t>(rows))
          .then(
              [self, number, shard = static_cast<std::size_t>(i), first_row,
               rows](const SamplePtr& sample) {
                answered(self, number, shard, first_row, rows, sample);
              },
              [self](caf::error& error) {
                self->quit(caf::make_error(Fault::lost, "no sample from replay: "
                                                            + explain(self->system(), error)));
              });
      first_row += rows;
    }
  }
}

std::string waiting(const PrefetchState& state) {
  if (state.pending.empty())
    return state.unacknowledged > 0 ? "waits until replay takes priorities" : "";
  std::string shards;
  for (const std::size_t shard : state.pending.front().shards)
    shards += (shards.empty() ? "" : ", ") + std::to_string(shard);
  return "waits for samples of replay " + shards;
}

void answer_flushes(PrefetchState& state) {
  if (state.unacknowledged > 0)
    return;
  for (auto& promise : state.flushing)
    promise.deliver(done_atom_v);
  state.flushing.clear();
}

/// Each row's priority to the shard that gave it.
void route_priorities(Self self, BatchBuffer& buffer) {
  auto& state = self->state;
  for (const BatchPart& part : buffer.parts) {
    auto made = std::make_shared<Priorities>();
    const auto first = static_cast<std::size_t>(part.first_row);
    const auto count = static_cast<std::size_t>(part.rows);
    const auto keys = buffer.view.key.subspan(first, count);
    made->keys.assign(keys.begin(), keys.end());
    made->values.assign(buffer.priorities.begin() + part.first_row,
                        buffer.priorities.begin() + part.first_row + part.rows);
    ++state.unacknowledged;
    self->request(state.options.shards[part.shard], kRequestDeadline, update_atom_v,
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
              self->quit(caf::make_error(Fault::lost, "replay took no priorities: "
                                                          + explain(self->system(), error)));
            });
  }
  buffer.priorities.clear();
}

} // namespace

PrefetchActor::behavior_type prefetch_actor(Self self, PrefetchOptions options) {
  auto& state = self->state;
  state.options = std::move(options);
  state.asked = state.granted = state.options.start;
  state.gather = std::make_unique<replay::ParallelGather>(state.options.threads);
  for (int i = 0; i <= state.options.ahead; ++i)
    state.free.push_back(std::make_shared<BatchBuffer>(state.options.transitions,
                                                       state.options.rows, state.options.feedback));
  return {
      [self](grant_atom, std::int64_t updates) {
        self->state.granted = updates;
        ask(self);
      },
      [self](batch_atom, BatchPtr& buffer) {
        if (!buffer->priorities.empty())
          route_priorities(self, *buffer);
        self->state.free.push_back(std::move(buffer));
        ask(self);
      },
      [self](report_atom) { return waiting(self->state); },
      [self](flush_atom) -> caf::result<done_atom> {
        auto promise = self->make_response_promise<done_atom>();
        self->state.flushing.push_back(promise);
        answer_flushes(self->state);
        return promise;
      },
  };
}

} // namespace troupe::actors
