#include "replay/shard.hpp"

#include <utility>

namespace troupe::replay {

namespace {
constexpr std::int64_t kMostSampled = 1'000'000; // in one request
}

Shard::Shard(const TableConfig& config, const TransitionSpec& spec, std::uint64_t seed,
             const ShardLimits& limits)
    : table_(config, spec, seed), limits_(limits) {}

bool Shard::insert(InsertionPtr insertion, std::function<void()> accepted) {
  if (insertions_.empty() && may_insert()) {
    table_.insert(*insertion);
    if (accepted)
      accepted();
    move_on();
    return true;
  }
  if (insertions_.size() >= limits_.waiting_insertions)
    return false;
  insertions_.push_back({std::move(insertion), std::move(accepted)});
  return true;
}

void Shard::sample(std::int64_t count, std::function<void(std::vector<Item>)> answer) {
  if (count < 1 || count > kMostSampled) {
    answer({});
    return;
  }
  if (samples_.empty() && may_sample(count)) {
    std::vector<Item> items;
    table_.sample(count, items);
    answer(std::move(items));
    move_on();
    return;
  }
  if (samples_.size() >= limits_.waiting_samples) {
    answer({});
    return;
  }
  samples_.push_back({count, std::move(answer)});
}

void Shard::cancel_all() {
  const auto samples = std::exchange(samples_, {});
  insertions_.clear();
  for (const WaitingSample& waiting : samples)
    waiting.answer({});
}

void Shard::set_open(bool open) {
  open_ = open;
  move_on();
}

std::string Shard::why_waiting() const {
  std::string text;
  if (!insertions_.empty())
    text = std::to_string(insertions_.size()) + " insertions wait";
  if (!samples_.empty())
    text += (text.empty() ? "" : " and ") + std::to_string(samples_.size()) + " samples of "
            + std::to_string(samples_.front().count) + " wait";
  if (text.empty())
    return text;
  return text + ": " + table_.why_blocked(samples_.empty() ? 1 : samples_.front().count);
}

bool Shard::may_insert() const {
  return open_ || table_.can_insert();
}

bool Shard::may_sample(std::int64_t count) const {
  return open_ ? table_.has_min_items() : table_.can_sample(count);
}

void Shard::move_on() {
  for (bool moved = true; moved;) {
    moved = false;
    if (!insertions_.empty() && may_insert()) {
      const WaitingInsertion next = std::move(insertions_.front());
      insertions_.pop_front();
      table_.insert(*next.insertion);
      if (next.accepted)
        next.accepted();
      moved = true;
    }
    if (!samples_.empty() && may_sample(samples_.front().count)) {
      const WaitingSample next = std::move(samples_.front());
      samples_.pop_front();
      std::vector<Item> items;
      table_.sample(next.count, items);
      next.answer(std::move(items));
      moved = true;
    }
  }
}

} // namespace troupe::replay
