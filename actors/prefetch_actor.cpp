#include "actors/prefetch_actor.hpp"

#include <algorithm>
#include <cstring>

#include "actors/system.hpp"
#include "replay/gather.hpp"

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
    replay::gather(state.options.transitions, sample.items, buffer.view, first_row);
    return;
  }
  const std::int64_t all = state.options.rows;
  copy_rows(buffer.view.observation, sample.observation, first_row, rows, all);
  copy_rows(buffer.view.next_observation, sample.next_observation, first_row, rows, all);
  copy_rows(buffer.view.action, sample.action, first_row, rows, all);
  copy_rows(buffer.view.reward, sample.reward, first_row, rows, all);
  copy_rows(buffer.view.discount, sample.discount, first_row, rows, all);
  copy_rows(buffer.view.key, sample.key, first_row, rows, all);
}

void deliver_ready(Self self) {
  auto& state = self->state;
  while (!state.pending.empty() && state.pending.front().missing == 0) {
    caf::anon_send(state.options.learner, batch_atom_v, std::move(state.pending.front().buffer));
    state.pending.pop_front();
  }
}

void answered(Self self, std::int64_t number, std::int64_t first_row, std::int64_t rows,
              const SamplePtr& sample) {
  auto& state = self->state;
  const auto at = std::find_if(state.pending.begin(), state.pending.end(),
                               [&](const auto& p) { return p.buffer->number == number; });
  if (at == state.pending.end())
    return;
  try {
    fill(state, *at->buffer, first_row, rows, *sample);
  } catch (const std::exception& e) {
    self->quit(failure(e));
    return;
  }
  --at->missing;
  deliver_ready(self);
}

void ask(Self self) {
  auto& state = self->state;
  while (state.asked < state.granted && !state.free.empty()) {
    const std::int64_t number = state.asked++;
    BatchPtr buffer = std::move(state.free.back());
    state.free.pop_back();
    buffer->number = number;
    const auto shards = static_cast<std::int64_t>(state.options.shards.size());
    state.pending.push_back({std::move(buffer), 0});
    std::int64_t first_row = 0;
    for (std::int64_t i = 0; i < shards; ++i) {
      const std::int64_t turn =
          (i + number) % shards; // who gives one more when the rows do not divide
      const std::int64_t rows =
          state.options.rows / shards + (turn < state.options.rows % shards ? 1 : 0);
      if (rows == 0)
        continue;
      ++state.pending.back().missing;
      self->request(state.options.shards[static_cast<std::size_t>(i)], kRequestDeadline,
                    sample_atom_v, static_cast<std::uint32_t>(state.options.replica),
                    static_cast<std::uint64_t>(number - state.options.start),
                    static_cast<std::uint32_t>(rows))
          .then([self, number, first_row, rows](
                    const SamplePtr& sample) { answered(self, number, first_row, rows, sample); },
                [self](caf::error& error) {
                  self->quit(caf::make_error(Fault::lost, "no sample from replay: "
                                                              + explain(self->system(), error)));
                });
      first_row += rows;
    }
  }
}

} // namespace

PrefetchActor::behavior_type prefetch_actor(Self self, PrefetchOptions options) {
  auto& state = self->state;
  state.options = std::move(options);
  state.asked = state.granted = state.options.start;
  for (int i = 0; i <= state.options.ahead; ++i)
    state.free.push_back(
        std::make_shared<BatchBuffer>(state.options.transitions, state.options.rows));
  return {
      [self](grant_atom, std::int64_t updates) {
        self->state.granted = updates;
        ask(self);
      },
      [self](batch_atom, BatchPtr& buffer) {
        self->state.free.push_back(std::move(buffer));
        ask(self);
      },
  };
}

} // namespace troupe::actors
