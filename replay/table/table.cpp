#include "replay/table/table.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "replay/table/table_checkpoint.hpp"
#include "replay/table/table_loader.hpp"

namespace troupe::replay {

void Table::check_insertion(const Insertion& insertion) const {
  for (const Item& item : insertion.items) {
    const std::shared_ptr<const RowLayout>& layout = item.chunks[0]->shared_layout();
    if (layout == checked_)
      continue;
    if (const std::string why = difference(state_.signature, layout->signature); !why.empty())
      throw std::invalid_argument("an insertion does not fit the table's signature: " + why
                                  + "; give the writer the table's signature");
    checked_ = layout;
  }
  if (state_.items.keeps_priorities() && !state_.config.insert_at_maximum)
    for (const Item& item : insertion.items)
      if (!valid_priority(item.priority))
        check_priority(item.priority, "a new item");
}

void Table::insert(const Insertion& insertion) {
  check_insertion(insertion);
  if (!state_.writers.accept(insertion.writer_id, insertion.sequence)) {
    ++state_.dropped_duplicates;
    return;
  }
  state_.shapes.begin_insertion();
  const bool queue = is_queue(state_.config.limiter.kind);
  for (const Item& item : insertion.items) {
    while ((!queue && size() >= state_.config.max_items)
           || (state_.shapes.is_full_for(item.shape) && size() > 0))
      remove_one();
    double priority = 1;
    if (state_.items.keeps_priorities()) {
      priority = state_.config.insert_at_maximum ? state_.greatest_priority : item.priority;
      state_.greatest_priority = std::max(state_.greatest_priority, priority);
    }
    state_.items.add(state_.chunks.cover(item, state_.shapes.use(item.shape)), priority);
  }
  state_.limiter.note_inserted(static_cast<std::int64_t>(insertion.items.size()));
  state_.chunks.finish_insertion(insertion.closed);
  free_memory();
}

/// Spills chunks or removes items until max_bytes is met.
void Table::free_memory() {
  state_.chunks.retry_disk();
  while (bytes() > state_.config.max_bytes && size() > 1) {
    const TableChunks::Spilled spilled = state_.chunks.spill_oldest();
    if (spilled == TableChunks::Spilled::nothing
        && state_.shapes.bytes() <= state_.config.max_bytes) // shapes stay in memory
      return;
    if (spilled != TableChunks::Spilled::one)
      remove_one();
  }
}

void Table::keep_to_limits() {
  const TableConfig& config = state_.config;
  if (config.max_times_sampled > 0)
    for (const TableItems::Place place : state_.items.by_key())
      if (state_.items.times_sampled(place) >= config.max_times_sampled)
        remove(place);
  while (size() > config.max_items)
    remove_one();
  free_memory();
  state_.limiter.reconfigure(config.limiter, size());
}

std::int64_t Table::samples_left() const {
  if (size() == 0)
    return 0;
  return state_.config.max_times_sampled == 0
             ? std::numeric_limits<std::int64_t>::max()
             : size() * state_.config.max_times_sampled - state_.items.times_sampled();
}

std::int64_t Table::most_samples() const {
  const std::int64_t all = std::numeric_limits<std::int64_t>::max();
  const TableConfig& config = state_.config;
  return config.max_times_sampled == 0
             ? all
             : config.max_items * std::min(config.max_times_sampled, all / config.max_items)
                   - reserve();
}

/// Returns the number of samples held back so that the table never runs empty. Queues may run
/// empty.
std::int64_t Table::reserve() const {
  return state_.config.max_times_sampled == 0 || is_queue(state_.config.limiter.kind)
                 || state_.config.max_items == 1
             ? 0
             : 1;
}

/// True if samples count towards the removal of their items.
bool Table::expires_by_use() const {
  return state_.config.max_times_sampled > 0
         && (!removal_suspended_ || is_queue(state_.config.limiter.kind));
}

bool Table::can_sample(std::int64_t count) const {
  return !is_starved(count) && state_.limiter.can_sample(size(), count);
}

bool Table::may_begin(std::int64_t count) const {
  return (expires_by_use() ? !is_starved(count) : size() > 0) && state_.limiter.may_begin(size());
}

std::string Table::why_blocked(std::int64_t count) const {
  std::string sample = state_.limiter.why_no_sample(size(), count);
  if (sample.empty() && is_starved(count))
    sample = "a sample of " + std::to_string(count)
             + " waits for inserts: " + std::to_string(samples_left() - reserve())
             + " samples are left in the table (max_times_sampled "
             + std::to_string(state_.config.max_times_sampled) + ")";
  const std::string insert = state_.limiter.why_no_insert(size());
  return sample + (sample.empty() || insert.empty() ? "" : ", and ") + insert;
}

void Table::set_limiter(const RateLimiterConfig& limiter) {
  TableConfig changed = state_.config;
  changed.limiter = limiter;
  check(changed);
  state_.config = changed;
  state_.limiter.reconfigure(limiter, size());
}

/// Sets all fields of `item` except the key and the probability.
inline void Table::fill(TableItems::Place place, Item& item) const {
  const ItemWindow& window = state_.items.window(place);
  state_.chunks.locate(window, item);
  item.shape = state_.shapes[window.shape];
  item.priority = state_.items.priority(place);
  item.times_sampled = state_.items.times_sampled(place);
  item.table_items = static_cast<std::uint32_t>(size());
}

Item Table::item(std::uint64_t key) const {
  Item made;
  made.key = key;
  fill(state_.items.find(key), made);
  return made;
}

void Table::sample(std::int64_t count, std::vector<Item>& out) {
  constexpr std::size_t kAhead = 8; // distance of prefetching, in items
  TableItems& items = state_.items;
  const bool expires = expires_by_use();
  count = std::min(count, expires ? samples_left() : size() == 0 ? 0 : count);
  out.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, count)));
  if (out.empty())
    return;
  selected_.resize(expires ? 1 : out.size());
  if (!expires) {
    items.sample(state_.random, selected_);
    for (std::size_t i = 0; i < std::min(kAhead, selected_.size()); ++i)
      items.prefetch(selected_[i].place);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i + kAhead < selected_.size())
      items.prefetch(selected_[i + kAhead].place);
    if (expires) // items are chosen one by one, because each sample may remove its item
      items.sample(state_.random, selected_);
    const Selected chosen = selected_[expires ? 0 : i];
    Item& item = out[i];
    if (expires || state_.config.max_times_sampled == 0)
      items.count_sample(chosen.place);
    fill(chosen.place, item);
    item.key = items.key_at(chosen.place);
    item.probability = chosen.probability;
    if (expires && item.times_sampled >= state_.config.max_times_sampled)
      remove(chosen.place);
    else if (!item.chunks[0]->encoded())
      __builtin_prefetch(item.chunks[0]->row(item.begin));
  }
  const auto sampled = static_cast<std::int64_t>(out.size());
  state_.sampled += sampled;
  state_.limiter.note_sampled(sampled);
}

void Table::update_priorities(std::span<const std::uint64_t> keys,
                              std::span<const double> priorities) {
  check_counts(keys.size(), priorities.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!valid_priority(priorities[i]))
      check_priority(priorities[i], "item " + std::to_string(keys[i]));
  if (!state_.items.keeps_priorities())
    return;
  updated_places_.clear();
  updated_priorities_.clear();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const TableItems::Place place = state_.items.find(keys[i]);
    if (place == TableItems::kAbsent)
      continue;
    updated_places_.push_back(place);
    updated_priorities_.push_back(priorities[i]);
    state_.greatest_priority = std::max(state_.greatest_priority, priorities[i]);
  }
  state_.items.set_priorities(updated_places_, updated_priorities_);
  state_.updated_priorities += static_cast<std::int64_t>(updated_places_.size());
  state_.late_priorities += static_cast<std::int64_t>(keys.size() - updated_places_.size());
}

TableStats Table::stats() const {
  return {.items = size(),
          .bytes = bytes(),
          .encoded_chunks = state_.chunks.encoded(),
          .chunks_on_disk = state_.chunks.on_disk(),
          .disk_bytes = state_.chunks.disk_bytes(),
          .failed_spills = state_.chunks.failed_spills(),
          .inserted = static_cast<std::int64_t>(state_.items.next_key()),
          .sampled = state_.sampled,
          .dropped_duplicates = state_.dropped_duplicates,
          .updated_priorities = state_.updated_priorities,
          .late_priorities = state_.late_priorities,
          .sampling_weight = may_begin(1) ? state_.items.total_weight() : 0};
}

TableSnapshot Table::snapshot() const {
  return snapshot_of(state_);
}

std::string Table::load(const std::filesystem::path& folder, ConfigChange change) {
  LoadedTable loaded = load_table(state_, folder, change == ConfigChange::accept);
  state_ = std::move(loaded.state);
  if (!loaded.difference.empty()) // the saved counters belong to another rate limiter
    keep_to_limits();
  return loaded.difference;
}

std::int64_t Table::load_part(std::span<const std::filesystem::path> folders, std::uint32_t part,
                              std::uint32_t parts) {
  state_ = load_table_part(state_, folders, part, parts);
  const std::int64_t before = size();
  keep_to_limits();
  return before - size();
}

} // namespace troupe::replay
