#include "replay/table/table_items.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace troupe::replay {

namespace {
constexpr std::size_t kFirstPlaces = 1024; // initial size of a ring
} // namespace

TableItems::TableItems(const TableConfig& config)
    : sampling_(config.sampler),
      keeps_priorities_(uses_priorities(config.sampler.kind)
                        || uses_priorities(config.remover.kind)) {
  const bool ring = config.remover.kind == SelectorKind::fifo && config.max_times_sampled == 0;
  if (!ring)
    remover_ = make_selector(config.remover);
  if (!ring || config.sampler.kind != SelectorKind::uniform)
    sampler_ = make_selector(config.sampler);
}

TableItems::Place TableItems::find(std::uint64_t key) const {
  if (!is_ring())
    return index_.find(key);
  return key >= begin_ && key < end_ ? static_cast<Place>(key & (windows_.size() - 1)) : kAbsent;
}

std::vector<TableItems::Place> TableItems::by_key() const {
  std::vector<Place> all;
  if (is_ring()) {
    for (std::uint64_t key = begin_; key < end_; ++key)
      all.push_back(find(key));
    return all;
  }
  remover_->order(all);
  std::sort(all.begin(), all.end(), [this](Place a, Place b) { return keys_[a] < keys_[b]; });
  return all;
}

TableItems::Place TableItems::new_place(std::uint64_t key) {
  if (is_ring()) {
    if (end_ - begin_ == windows_.size())
      grow_ring();
    return static_cast<Place>(key & (windows_.size() - 1));
  }
  auto place = static_cast<Place>(windows_.size());
  if (free_places_.empty()) {
    windows_.emplace_back();
    times_.emplace_back();
    keys_.emplace_back();
    if (keeps_priorities_)
      priorities_.emplace_back();
  } else {
    place = free_places_.back();
    free_places_.pop_back();
  }
  keys_[place] = key;
  index_.insert(key, place);
  return place;
}

/// Moves the items to new places and reinserts them in the sampler in its own order.
void TableItems::grow_ring() {
  const std::size_t size = std::max(kFirstPlaces, 2 * windows_.size());
  std::vector<Place> order;
  if (sampler_)
    sampler_->order(order);
  for (Place& place : order)
    place = static_cast<Place>(key_at(place) & (size - 1));
  const auto spread = [&](auto& values) {
    std::remove_reference_t<decltype(values)> larger(size);
    for (std::uint64_t key = begin_; key < end_; ++key)
      larger[key & (size - 1)] = values[key & (values.size() - 1)];
    values = std::move(larger);
  };
  spread(windows_);
  spread(times_);
  if (keeps_priorities_)
    spread(priorities_);
  if (!sampler_)
    return;
  sampler_ = make_selector(sampling_);
  for (const Place place : order)
    sampler_->insert(place, priority(place));
}

TableItems::Place TableItems::add(const ItemWindow& window, double priority) {
  const Place place = new_place(end_);
  ++end_;
  windows_[place] = window;
  times_[place] = 0;
  if (keeps_priorities_)
    priorities_[place] = priority;
  if (sampler_)
    sampler_->insert(place, priority);
  if (remover_)
    remover_->insert(place, priority);
  return place;
}

ItemWindow TableItems::remove(Place place) {
  times_of_all_ -= times_[place];
  if (sampler_)
    sampler_->erase(place);
  if (remover_) {
    remover_->erase(place);
    index_.erase(keys_[place]);
    free_places_.push_back(place);
  } else {
    ++begin_;
  }
  return windows_[place];
}

TableItems::Place TableItems::choose_removal(Random& random) const {
  return remover_ ? remover_->select(random).place
                  : static_cast<Place>(begin_ & (windows_.size() - 1));
}

void TableItems::set_priorities(std::span<const Place> places, std::span<const double> priorities) {
  for (std::size_t i = 0; i < places.size(); ++i)
    priorities_[places[i]] = priorities[i];
  if (sampler_)
    sampler_->update(places, priorities);
  if (remover_)
    remover_->update(places, priorities);
}

void TableItems::sample(Random& random, std::span<Selected> out) const {
  if (sampler_) {
    sampler_->select(random, out);
  } else {
    const double probability = 1.0 / static_cast<double>(end_ - begin_);
    for (Selected& one : out)
      one = {static_cast<Place>((begin_ + random.below(end_ - begin_)) & (windows_.size() - 1)),
             probability};
  }
  for (const Selected& one : out) {
    __builtin_prefetch(&windows_[one.place]);
    __builtin_prefetch(&times_[one.place], 1);
    if (keeps_priorities_)
      __builtin_prefetch(&priorities_[one.place]);
  }
}

void TableItems::restore(const SavedItems& saved, std::uint64_t next_key, bool same_selectors) {
  const std::size_t count = saved.windows.size();
  std::size_t size = count;
  if (is_ring())
    for (size = kFirstPlaces; size < count;)
      size *= 2;
  end_ = next_key;
  begin_ = next_key - count;
  windows_.resize(size);
  times_.resize(size);
  if (keeps_priorities_)
    priorities_.resize(size);
  if (!is_ring())
    keys_ = saved.keys;
  std::vector<Place> places(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto place = static_cast<Place>(is_ring() ? (begin_ + i) & (size - 1) : i);
    places[i] = place;
    windows_[place] = saved.windows[i];
    times_[place] = saved.times[i];
    times_of_all_ += saved.times[i];
    if (keeps_priorities_)
      priorities_[place] = saved.priorities.empty() ? 1 : saved.priorities[i];
    if (!is_ring())
      index_.insert(saved.keys[i], place);
  }
  const auto fill = [&](Selector* selector, const std::vector<std::uint32_t>& order) {
    for (std::size_t i = 0; selector != nullptr && i < count; ++i) {
      const Place place = places[same_selectors ? order[i] : i];
      selector->insert(place, priority(place));
    }
  };
  fill(sampler_.get(), saved.sampler);
  fill(remover_.get(), saved.remover);
}

} // namespace troupe::replay
