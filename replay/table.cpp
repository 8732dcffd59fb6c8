#include "replay/table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "env/split_mix.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMaxWriters = 65536; // remembered for duplicates
constexpr std::int64_t kMaxItems = std::int64_t{1} << 31;

template <typename T>
void need(bool fine, const char* key, T value, const char* rule) {
  if (fine)
    return;
  std::ostringstream text;
  text << "replay." << key << " is " << value << " but must be " << rule;
  throw std::invalid_argument(text.str());
}

void check_config(const TableConfig& config) {
  need(config.max_items >= 1 && config.max_items <= kMaxItems, "max_items", config.max_items,
       "1 to 2^31");
  need(config.max_bytes >= 1, "max_bytes", config.max_bytes, "at least 1 byte");
  need(config.min_items >= 1 && config.min_items <= config.max_items, "min_items", config.min_items,
       "at least 1 and at most max_items, else no sample is ever let through");
  need(config.samples_per_insert > 0 && std::isfinite(config.samples_per_insert),
       "samples_per_insert", config.samples_per_insert, "above 0 and finite");
  need(config.error_buffer >= std::max(1.0, config.samples_per_insert) || config.deterministic,
       "error_buffer", config.error_buffer,
       "at least max(1, samples_per_insert), else neither side may ever move; raise it");
}

} // namespace

Table::Table(const TableConfig& config, const TransitionSpec& spec, std::uint64_t seed)
    : config_(config), spec_(spec) {
  check_config(config);
  check(spec);
  for (std::uint64_t& word : random_)
    word = env::split_mix(seed);
}

void Table::insert(const Insertion& insertion) {
  if (!take_sequence(insertion.writer_id, insertion.sequence)) {
    ++dropped_duplicates_;
    return;
  }
  for (const Item& item : insertion.items) {
    if (end_ - begin_ == static_cast<std::uint64_t>(config_.max_items))
      remove_oldest();
    push(item);
  }
  limiter_inserted_ += static_cast<std::int64_t>(insertion.items.size());
  while (bytes_ > config_.max_bytes && end_ - begin_ > 1)
    remove_oldest();
}

bool Table::take_sequence(std::uint64_t writer_id, std::uint64_t sequence) {
  if (writers_.size() >= kMaxWriters && !writers_.contains(writer_id))
    writers_.erase(std::min_element(writers_.begin(), writers_.end(), [](auto& a, auto& b) {
      return a.second.used < b.second.used;
    }));
  Sequences& known = writers_[writer_id];
  known.used = insertions_++;
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

std::uint32_t Table::hold(const std::shared_ptr<const Chunk>& chunk, std::uint32_t low,
                          std::uint32_t high) {
  const auto [at, added] = held_of_.try_emplace(chunk.get(), kNone);
  if (added) {
    if (free_held_.empty()) {
      at->second = static_cast<std::uint32_t>(held_.size());
      held_.emplace_back();
    } else {
      at->second = free_held_.back();
      free_held_.pop_back();
    }
    held_[at->second] = {chunk, 0, low, high};
    bytes_ += static_cast<std::int64_t>(chunk->bytes());
  }
  return at->second;
}

void Table::release(std::uint32_t index) {
  Held& held = held_[index];
  if (--held.items > 0)
    return;
  bytes_ -= static_cast<std::int64_t>(held.chunk->bytes());
  held_of_.erase(held.chunk.get());
  held.chunk.reset();
  free_held_.push_back(index);
}

void Table::push(const Item& item) {
  if (end_ - begin_ == ring_.size())
    grow();
  const std::uint32_t capacity = item.chunks[0]->capacity();
  const std::uint32_t end = item.begin + item.rows();
  Slot slot{kNone, kNone, item.begin, item.history, item.steps};
  const auto cover = [&](const std::shared_ptr<const Chunk>& chunk, std::uint32_t low,
                         std::uint32_t high) {
    // Consecutive items mostly lie in one chunk: look there before asking the map.
    std::uint32_t index = newest_held_;
    if (index >= held_.size() || held_[index].chunk != chunk)
      index = newest_held_ = hold(chunk, low, high);
    Held& held = held_[index];
    ++held.items;
    held.low = std::min(held.low, low);
    held.high = std::max(held.high, high);
    return index;
  };
  slot.chunk = cover(item.chunks[0], item.begin, std::min(end, capacity));
  if (end > capacity)
    slot.next_chunk = cover(item.chunks[1], 0, end - capacity);
  ring_[end_ & (ring_.size() - 1)] = slot;
  ++end_;
}

void Table::grow() {
  std::vector<Slot> larger(std::max<std::size_t>(1024, 2 * ring_.size()));
  for (std::uint64_t key = begin_; key < end_; ++key)
    larger[key & (larger.size() - 1)] = ring_[key & (ring_.size() - 1)];
  ring_ = std::move(larger);
}

void Table::remove_oldest() {
  const Slot slot = ring_[begin_ & (ring_.size() - 1)];
  ++begin_;
  release(slot.chunk);
  if (slot.next_chunk != kNone)
    release(slot.next_chunk);
}

double Table::drift() const {
  return config_.samples_per_insert * static_cast<double>(limiter_inserted_ - config_.min_items)
         - static_cast<double>(limiter_sampled_);
}

bool Table::has_min_items() const {
  return limiter_inserted_ >= config_.min_items && end_ > begin_;
}

bool Table::can_insert() const {
  return config_.deterministic || limiter_inserted_ < config_.min_items
         || drift() + config_.samples_per_insert <= config_.error_buffer;
}

double Table::least_drift(std::int64_t count) const {
  return -std::max(config_.error_buffer,
                   static_cast<double>(count) + config_.samples_per_insert - config_.error_buffer);
}

bool Table::can_sample(std::int64_t count) const {
  return has_min_items()
         && (config_.deterministic || drift() - static_cast<double>(count) >= least_drift(count));
}

std::string Table::why_blocked(std::int64_t count) const {
  std::ostringstream text;
  if (!can_sample(count)) {
    if (!has_min_items())
      text << "samples wait for inserts: " << limiter_inserted_ << " of min_items "
           << config_.min_items << " inserted";
    else
      text << "a sample of " << count << " waits for inserts: samples are "
           << static_cast<double>(count) - drift() << " ahead of samples_per_insert "
           << config_.samples_per_insert << ", at most " << -least_drift(count)
           << " allowed (error_buffer " << config_.error_buffer << ")";
  }
  if (!can_insert())
    text << "inserts wait for samples: samples are " << drift() + config_.samples_per_insert
         << " behind samples_per_insert " << config_.samples_per_insert << ", at most error_buffer "
         << config_.error_buffer << " allowed";
  return text.str();
}

std::uint64_t Table::random_below(std::uint64_t bound) {
  // xoshiro256++ (Blackman and Vigna); the product's high word is the index (Lemire), whose bias is
  // below bound / 2^64.
  auto& s = random_;
  const std::uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
  const std::uint64_t t = s[1] << 17U;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(result) * bound >> 64U);
}

void Table::sample(std::int64_t count, std::vector<Item>& out) {
  const std::uint64_t size = end_ - begin_;
  out.resize(size == 0 ? 0 : static_cast<std::size_t>(std::max<std::int64_t>(0, count)));
  if (out.empty())
    return;
  const std::uint64_t mask = ring_.size() - 1;
  for (Item& item : out) {
    item.key = begin_ + random_below(size);
    __builtin_prefetch(&ring_[item.key & mask]);
  }
  for (Item& item : out) {
    const Slot& slot = ring_[item.key & mask];
    item.chunks[0] = held_[slot.chunk].chunk;
    if (slot.next_chunk != kNone)
      item.chunks[1] = held_[slot.next_chunk].chunk;
    else if (item.chunks[1])
      item.chunks[1].reset();
    item.begin = slot.begin;
    item.history = slot.history;
    item.steps = slot.steps;
    __builtin_prefetch(item.chunks[0]->row(slot.begin));
  }
  sampled_ += static_cast<std::int64_t>(out.size());
  limiter_sampled_ += static_cast<std::int64_t>(out.size());
}

TableStats Table::stats() const {
  return {.items = static_cast<std::int64_t>(end_ - begin_),
          .bytes = bytes_,
          .inserted = static_cast<std::int64_t>(end_),
          .sampled = sampled_,
          .dropped_duplicates = dropped_duplicates_};
}

} // namespace troupe::replay
