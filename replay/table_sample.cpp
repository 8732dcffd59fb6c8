#include <algorithm>

#include "replay/table.hpp"

namespace troupe::replay {

namespace {
void prefetch(const Item& item) {
  if (!item.chunks[0]->encoded())
    __builtin_prefetch(item.chunks[0]->row(item.begin));
}
} // namespace

/// All but the key and the probability.
inline void Table::fill(Place place, Item& item) const {
  const Slot& slot = slots_[place];
  const Held* held = &held_[slot.chunk];
  const std::uint32_t capacity = held->chunk->capacity();
  const std::uint32_t end = slot.begin + slot.rows;
  item.chunks.resize(end <= capacity ? 1 : (end - 1) / capacity + 1);
  item.chunks.set(0, held->chunk);
  for (std::size_t i = 1; i < item.chunks.size(); ++i) {
    held = &held_[held->next];
    item.chunks.set(i, held->chunk);
  }
  item.begin = slot.begin;
  item.rows = slot.rows;
  item.history = slot.history;
  item.shape = shapes_[slot.shape];
  item.priority = priorities_.empty() ? 1 : priorities_[place];
  item.times_sampled = times_[place];
  item.table_items = static_cast<std::uint32_t>(size());
}

Item Table::item(std::uint64_t key) const {
  Item made;
  made.key = key;
  fill(place_of(key), made);
  return made;
}

void Table::sample_ring(std::vector<Item>& out) {
  const std::uint64_t size = end_ - begin_;
  const std::uint64_t mask = slots_.size() - 1;
  const double probability = 1.0 / static_cast<double>(size);
  for (Item& item : out) {
    item.key = begin_ + random_.below(size);
    __builtin_prefetch(&slots_[item.key & mask]);
    __builtin_prefetch(&times_[item.key & mask], 1);
  }
  for (Item& item : out) {
    const auto place = static_cast<Place>(item.key & mask);
    ++times_[place];
    fill(place, item);
    item.probability = probability;
    prefetch(item);
  }
}

void Table::sample_selected(std::vector<Item>& out) {
  selected_.resize(out.size());
  sampler_->select(random_, selected_);
  for (const Selected& one : selected_) {
    __builtin_prefetch(&slots_[one.place]);
    __builtin_prefetch(&times_[one.place], 1);
    if (!priorities_.empty())
      __builtin_prefetch(&priorities_[one.place]);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Place place = selected_[i].place;
    if (config_.max_times_sampled == 0) // else it is suspended
      ++times_[place];
    fill(place, out[i]);
    out[i].key = key_at(place);
    out[i].probability = selected_[i].probability;
    prefetch(out[i]);
  }
}

/// One after another: each may remove its item.
void Table::sample_to_the_last(std::int64_t count, std::vector<Item>& out) {
  out.resize(static_cast<std::size_t>(std::min(count, samples_left())));
  for (Item& item : out) {
    const Selected one = sampler_->select(random_);
    const auto times = static_cast<std::int64_t>(++times_[one.place]);
    ++used_samples_;
    fill(one.place, item);
    item.key = key_at(one.place);
    item.probability = one.probability;
    if (times >= config_.max_times_sampled)
      remove(one.place);
  }
}

void Table::sample(std::int64_t count, std::vector<Item>& out) {
  out.resize(size() == 0 ? 0 : static_cast<std::size_t>(std::max<std::int64_t>(0, count)));
  if (out.empty())
    return;
  if (wears())
    sample_to_the_last(count, out);
  else if (sampler_)
    sample_selected(out);
  else
    sample_ring(out);
  sampled_ += static_cast<std::int64_t>(out.size());
  limiter_.note_sampled(static_cast<std::int64_t>(out.size()));
  for (const auto& extension : extensions_)
    for (const Item& item : out)
      extension->on_sample(*this, item);
}

} // namespace troupe::replay
