#include "replay/table/shard.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace troupe::replay {

namespace {

constexpr std::int64_t kMostSampled = 1'000'000; // items in one request
constexpr std::size_t kMostNamed = 5;            // waiting requests named in a message

using Time = std::chrono::steady_clock::time_point;

void refuse_sample(const std::function<void(std::vector<Item>)>& answer, const WaitOptions& wait,
                   const std::string& why) {
  if (wait.refused)
    wait.refused(why);
  else
    answer({});
}

/// " (writers 1, 2 and 3 more)"
std::string named(const char* what, const std::set<std::string>& names) {
  std::string text;
  std::size_t listed = 0;
  for (const std::string& name : names) {
    if (listed == kMostNamed)
      break;
    text += (listed++ == 0 ? std::string(" (") + what : ", ") + name;
  }
  if (names.size() > kMostNamed)
    text += " and " + std::to_string(names.size() - kMostNamed) + " more";
  return text.empty() ? text : text + ")";
}

/// Estimates the memory that an insertion occupies.
std::size_t bytes_of(const Insertion& insertion) {
  constexpr std::size_t kPages = 8192; // bytes that the first row of a chunk occupies
  std::size_t bytes = insertion.items.size() * sizeof(Item);
  for (const ChunkRows& rows : insertion.rows)
    bytes += rows.count * (rows.chunk->layout().row_bytes + 1) + kPages;
  return bytes;
}

bool is_late(const WaitOptions& wait, Time now) {
  return wait.deadline <= now || wait.is_cancelled();
}

/// Removes and returns the requests whose deadline has passed, and cancelled ones.
template <class Waiting>
std::deque<Waiting> take_late(std::deque<Waiting>& queue, Time now) {
  std::deque<Waiting> late;
  std::deque<Waiting> left;
  for (Waiting& waiting : queue)
    (is_late(waiting.wait, now) ? late : left).push_back(std::move(waiting));
  queue = std::move(left);
  return late;
}

} // namespace

Shard::Shard(const TableConfig& config, const Signature& signature, std::uint64_t seed,
             const ShardLimits& limits)
    : table_(config, signature, seed), limits_(limits) {}

bool Shard::insert(InsertionPtr insertion, std::function<void()> accepted, WaitOptions wait) {
  if (insertions_.empty() && may_insert()) {
    table_.insert(*insertion);
    if (accepted)
      accepted();
    serve_waiters();
    return true;
  }
  table_.check_insertion(*insertion);
  const std::size_t bytes = bytes_of(*insertion);
  if (insertions_.size() >= limits_.waiting_insertions
      || (!insertions_.empty() && waiting_bytes_ + bytes > limits_.waiting_bytes))
    return false;
  waiting_bytes_ += bytes;
  insertions_.push_back({std::move(insertion), std::move(accepted), std::move(wait), bytes});
  serve_waiters(); // waiting samples may need this insertion
  return true;
}

void Shard::sample(std::int64_t count, std::function<void(std::vector<Item>)> answer,
                   WaitOptions wait) {
  const std::int64_t most = std::min(kMostSampled, table_.most_samples());
  if (count < 1 || count > most) {
    refuse_sample(answer, wait,
                  "a sample of " + std::to_string(count) + " items: 1 to " + std::to_string(most)
                      + " are possible here");
    return;
  }
  if (samples_.empty() && may_sample(count)) {
    std::vector<Item> items;
    table_.sample(count, items);
    answer(std::move(items));
    serve_waiters();
    return;
  }
  if (samples_.size() >= limits_.waiting_samples) {
    refuse_sample(answer, wait,
                  std::to_string(samples_.size())
                      + " samples are already waiting; ask again later");
    return;
  }
  samples_.push_back({count, std::move(answer), std::move(wait)});
  serve_waiters();
}

void Shard::expire(Time now) {
  const auto late = [now](const auto& waiting) { return is_late(waiting.wait, now); };
  if (std::none_of(insertions_.begin(), insertions_.end(), late)
      && std::none_of(samples_.begin(), samples_.end(), late))
    return;
  const auto why = [passed = "the deadline passed; " + why_waiting()](const WaitOptions& wait) {
    return wait.is_cancelled() ? "the request was cancelled" : passed;
  };
  for (const WaitingInsertion& waiting : take_late(insertions_, now)) {
    waiting_bytes_ -= waiting.bytes;
    if (waiting.wait.refused)
      waiting.wait.refused(why(waiting.wait));
  }
  for (const WaitingSample& waiting : take_late(samples_, now))
    refuse_sample(waiting.answer, waiting.wait, why(waiting.wait));
  serve_waiters(); // a small sample may have waited behind a large one
}

std::optional<Time> Shard::next_deadline() const {
  Time next = Time::max();
  for (const WaitingInsertion& waiting : insertions_)
    next = std::min(next, waiting.wait.deadline);
  for (const WaitingSample& waiting : samples_)
    next = std::min(next, waiting.wait.deadline);
  return next == Time::max() ? std::nullopt : std::optional(next);
}

void Shard::cancel_all() {
  const auto samples = std::exchange(samples_, {});
  insertions_.clear();
  waiting_bytes_ = 0;
  for (const WaitingSample& waiting : samples)
    refuse_sample(waiting.answer, waiting.wait, "the shard stops");
}

void Shard::bypass_rate_limiter(bool bypassed) {
  bypassed_ = bypassed;
  table_.suspend_removal(bypassed);
  serve_waiters();
}

void Shard::set_limiter(const RateLimiterConfig& limiter) {
  table_.set_limiter(limiter);
  serve_waiters();
}

std::string Shard::why_waiting() const {
  std::string text;
  if (!insertions_.empty()) {
    std::set<std::string> writers;
    for (const WaitingInsertion& waiting : insertions_)
      writers.insert(std::to_string(waiting.insertion->writer_id));
    text = std::to_string(insertions_.size()) + " insertions wait"
           + named(writers.size() == 1 ? "writer " : "writers ", writers);
  }
  if (!samples_.empty()) {
    std::set<std::string> who;
    for (const WaitingSample& waiting : samples_)
      if (!waiting.wait.who.empty())
        who.insert(waiting.wait.who);
    text += (text.empty() ? "" : " and ") + std::to_string(samples_.size()) + " samples of "
            + std::to_string(samples_.front().count) + " wait" + named("", who);
  }
  if (text.empty())
    return text;
  return text + ": " + table_.why_blocked(samples_.empty() ? 1 : samples_.front().count);
}

bool Shard::may_insert() const {
  return bypassed_ || table_.can_insert()
         || (!samples_.empty() && table_.is_starved(samples_.front().count));
}

bool Shard::may_sample(std::int64_t count) const {
  return bypassed_ ? table_.may_begin(count) : table_.can_sample(count);
}

void Shard::serve_waiters() {
  for (bool moved = true; moved;) {
    moved = false;
    if (!insertions_.empty() && may_insert()) {
      const WaitingInsertion next = std::move(insertions_.front());
      insertions_.pop_front();
      waiting_bytes_ -= next.bytes;
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
