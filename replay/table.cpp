#include "replay/table.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "replay/remembered.hpp"

namespace troupe::replay {

namespace {

constexpr std::size_t kMaxWriters = 65536; // remembered for duplicates
constexpr std::size_t kFirstPlaces = 1024;

/// A ring chooses uniformly, and forgets the oldest, by its keys alone.
bool by_keys(const TableConfig& config) {
  return config.remover.kind == SelectorKind::fifo && config.max_times_sampled == 0;
}

} // namespace

Table::Table(const TableConfig& config, const Signature& signature, std::uint64_t seed)
    : config_((check(config), config)),
      signature_((check(signature), signature)),
      limiter_(config.limiter),
      random_(seed),
      encoder_(config.compression) {
  const bool ring = by_keys(config_);
  if (!ring)
    remover_ = make_selector(config_.remover);
  if (!ring || config_.sampler.kind != SelectorKind::uniform)
    sampler_ = make_selector(config_.sampler);
}

bool Table::keeps_priorities() const {
  return uses_priorities(config_.sampler.kind) || uses_priorities(config_.remover.kind);
}

void Table::check_insertion(const Insertion& insertion) const {
  for (const Item& item : insertion.items) {
    const std::shared_ptr<const RowLayout>& layout = item.chunks[0]->shared_layout();
    if (layout == checked_)
      continue;
    if (const std::string why = difference(signature_, layout->signature); !why.empty())
      throw std::invalid_argument("an insertion does not fit the table's signature: " + why
                                  + "; give the writer the table's signature");
    checked_ = layout;
  }
  if (shapes_.size() + insertion.items.size() > kMaxShapes)
    for (const Item& item : insertion.items)
      if (item.shape && !shape_numbers_.contains(*item.shape))
        throw std::invalid_argument(
            "the table holds items of " + std::to_string(shapes_.size())
            + " shapes already; of variable lengths let only the window vary"
              " and leave the shape out");
  if (keeps_priorities() && !config_.insert_at_maximum)
    for (const Item& item : insertion.items)
      if (!valid_priority(item.priority))
        check_priority(item.priority, "a new item");
}

void Table::insert(const Insertion& insertion) {
  check_insertion(insertion);
  if (!take_sequence(insertion.writer_id, insertion.sequence)) {
    ++dropped_duplicates_;
    return;
  }
  const std::size_t raw = raw_.size();
  for (const Item& item : insertion.items) {
    remove_above_limits(1);
    push(item);
  }
  limiter_.note_inserted(static_cast<std::int64_t>(insertion.items.size()));
  close(insertion.closed);
  encode_some(raw_.size() - raw);
  remove_above_limits(0);
}

void Table::remove_above_limits(std::int64_t coming) {
  while (size() + coming > config_.max_items)
    remove_one();
  if (coming > 0)
    return;
  failed_at_ = -1;
  while (bytes_ > config_.max_bytes && size() > 1) {
    const Spilled spilled = store_ ? spill_one() : Spilled::failed;
    if (spilled == Spilled::nothing)
      return;
    if (spilled == Spilled::failed)
      remove_one();
  }
}

bool Table::take_sequence(std::uint64_t writer_id, std::uint64_t sequence) {
  Sequences& known = remember(writers_, writer_id, kMaxWriters, insertions_++);
  if (known.seen == 0 || sequence > known.newest) {
    const std::uint64_t ahead = sequence - known.newest;
    known.seen = (known.seen == 0 || ahead >= 64 ? 0 : known.seen << ahead) | 1U;
    known.newest = sequence;
    return true;
  }
  const std::uint64_t behind = known.newest - sequence;
  if (behind >= 64 || (known.seen >> behind & 1U) != 0)
    return false;
  known.seen |= std::uint64_t{1} << behind;
  return true;
}

Table::Place Table::place_of(std::uint64_t key) const {
  if (!is_ring())
    return index_.find(key);
  return key >= begin_ && key < end_ ? static_cast<Place>(key & (slots_.size() - 1))
                                     : KeyIndex::kAbsent;
}

std::uint64_t Table::key_at(Place place) const {
  return is_ring() ? begin_ + ((place - begin_) & (slots_.size() - 1)) : keys_[place];
}

Table::Place Table::new_place(std::uint64_t key) {
  if (is_ring()) {
    if (end_ - begin_ == slots_.size())
      grow_ring();
    return static_cast<Place>(key & (slots_.size() - 1));
  }
  Place place = static_cast<Place>(slots_.size());
  if (free_places_.empty()) {
    slots_.emplace_back();
    times_.emplace_back();
    keys_.emplace_back();
    if (keeps_priorities())
      priorities_.emplace_back();
  } else {
    place = free_places_.back();
    free_places_.pop_back();
  }
  keys_[place] = key;
  index_.insert(key, place);
  return place;
}

std::vector<Table::Place> Table::places_by_key() const {
  std::vector<Place> all;
  if (is_ring()) {
    for (std::uint64_t key = begin_; key < end_; ++key)
      all.push_back(place_of(key));
    return all;
  }
  remover_->order(all);
  std::sort(all.begin(), all.end(), [this](Place a, Place b) { return keys_[a] < keys_[b]; });
  return all;
}

/// Items of a ring get other places then; the sampler is told, in its own order.
void Table::grow_ring() {
  const std::size_t size = std::max(kFirstPlaces, 2 * slots_.size());
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
  spread(slots_);
  spread(times_);
  if (keeps_priorities())
    spread(priorities_);
  if (!sampler_)
    return;
  sampler_->clear();
  for (const Place place : order)
    sampler_->insert(place, keeps_priorities() ? priorities_[place] : 1);
}

void Table::push(const Item& item) {
  const Place place = new_place(end_);
  Slot slot{kNoPlace, item.begin, item.rows, item.history, shape_number(item.shape)};
  cover_window(item, slot);
  slots_[place] = slot;
  times_[place] = 0;
  ++end_;
  double priority = 1;
  if (keeps_priorities()) {
    priority = config_.insert_at_maximum ? greatest_priority_ : item.priority;
    greatest_priority_ = std::max(greatest_priority_, priority);
    priorities_[place] = priority;
  }
  if (sampler_)
    sampler_->insert(place, priority);
  if (remover_)
    remover_->insert(place, priority);
  for (const auto& extension : extensions_)
    extension->on_insert(*this, this->item(end_ - 1));
}

void Table::remove(Place place) {
  const Slot slot = slots_[place];
  const std::uint64_t key = key_at(place);
  if (config_.max_times_sampled > 0)
    used_samples_ -= times_[place];
  if (sampler_)
    sampler_->erase(place);
  if (remover_) {
    remover_->erase(place);
    index_.erase(key);
    free_places_.push_back(place);
  } else {
    ++begin_;
  }
  release_window(slot);
  for (const auto& extension : extensions_)
    extension->on_remove(*this, key, times_[place]);
}

void Table::remove_one() {
  remove(remover_ ? remover_->select(random_).place
                  : static_cast<Place>(begin_ & (slots_.size() - 1)));
}

std::int64_t Table::samples_left() const {
  if (size() == 0)
    return 0;
  return config_.max_times_sampled == 0 ? std::numeric_limits<std::int64_t>::max()
                                        : size() * config_.max_times_sampled - used_samples_;
}

std::int64_t Table::most_samples() const {
  return config_.max_times_sampled == 0
             ? std::numeric_limits<std::int64_t>::max()
             : config_.max_items
                       * std::min(config_.max_times_sampled,
                                  std::numeric_limits<std::int64_t>::max() / config_.max_items)
                   - reserve();
}

/// Samples that stay in the table, so that it never runs empty; a queue may.
std::int64_t Table::reserve() const {
  return config_.max_times_sampled == 0 || is_queue(config_.limiter.kind) || config_.max_items == 1
             ? 0
             : 1;
}

/// Each sample brings an item nearer to its end.
bool Table::wears() const {
  return config_.max_times_sampled > 0 && (!removal_suspended_ || is_queue(config_.limiter.kind));
}

bool Table::can_sample(std::int64_t count) const {
  return !lacks(count) && limiter_.can_sample(size(), count);
}

bool Table::may_begin(std::int64_t count) const {
  return (wears() ? !lacks(count) : size() > 0) && limiter_.may_begin(size());
}

std::string Table::why_blocked(std::int64_t count) const {
  std::string sample = limiter_.why_no_sample(size(), count);
  if (sample.empty() && lacks(count))
    sample = "a sample of " + std::to_string(count)
             + " waits for inserts: " + std::to_string(samples_left() - reserve())
             + " samples are left in the table (max_times_sampled "
             + std::to_string(config_.max_times_sampled) + ")";
  const std::string insert = limiter_.why_no_insert(size());
  return sample + (sample.empty() || insert.empty() ? "" : ", and ") + insert;
}

void Table::set_limiter(const LimiterConfig& limiter) {
  TableConfig changed = config_;
  changed.limiter = limiter;
  check(changed);
  config_ = changed;
  limiter_.reconfigure(limiter, size());
}

void Table::add_extension(std::shared_ptr<TableExtension> extension) {
  extensions_.push_back(std::move(extension));
}

void Table::give_priority(Place place, double priority) {
  priorities_[place] = priority;
  greatest_priority_ = std::max(greatest_priority_, priority);
  if (sampler_)
    sampler_->update(place, priority);
  if (remover_)
    remover_->update(place, priority);
}

bool Table::set_priority(std::uint64_t key, double priority) {
  check_priority(priority, "item " + std::to_string(key));
  const Place place = place_of(key);
  if (place != KeyIndex::kAbsent && keeps_priorities())
    give_priority(place, priority);
  return place != KeyIndex::kAbsent;
}

void Table::update_priorities(std::span<const std::uint64_t> keys,
                              std::span<const double> priorities) {
  if (keys.size() != priorities.size())
    throw std::invalid_argument(std::to_string(keys.size()) + " keys and "
                                + std::to_string(priorities.size())
                                + " priorities: there must be one for each key");
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!valid_priority(priorities[i]))
      check_priority(priorities[i], "item " + std::to_string(keys[i]));
  if (!keeps_priorities())
    return;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Place place = place_of(keys[i]);
    if (place == KeyIndex::kAbsent) {
      ++late_priorities_;
      continue;
    }
    const double before = priorities_[place];
    give_priority(place, priorities[i]);
    ++updated_priorities_;
    for (const auto& extension : extensions_)
      extension->on_update(*this, keys[i], before, priorities[i]);
  }
}

TableStats Table::stats() const {
  return {.items = size(),
          .bytes = bytes_,
          .encoded_chunks = encoded_chunks_,
          .chunks_on_disk = static_cast<std::int64_t>(on_disk_.size()),
          .disk_bytes = disk_bytes_,
          .failed_spills = failed_spills_,
          .inserted = static_cast<std::int64_t>(end_),
          .sampled = sampled_,
          .dropped_duplicates = dropped_duplicates_,
          .updated_priorities = updated_priorities_,
          .late_priorities = late_priorities_,
          .sampling_weight = !may_begin(1) ? 0
                             : sampler_    ? sampler_->total()
                                           : static_cast<double>(size())};
}

} // namespace troupe::replay
