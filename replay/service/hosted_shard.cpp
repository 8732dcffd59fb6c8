#include "replay/service/hosted_shard.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe::replay {

namespace {

/// Makes the change. Returns the reason if it is refused, otherwise "".
template <typename Change>
std::string refusal_of(Change change) {
  try {
    change();
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

} // namespace

HostedShard::HostedShard(const HostedTable& table, HostedShardOptions options)
    : name_(table.name.empty() ? "replay shard" : "replay table \"" + table.name + "\""),
      options_(std::move(options)),
      shard_(table.config, table.signature, table.seed),
      stall_(options_.report_after) {
  if (!table.spill.folder.empty())
    shard_.table().spill_to(std::make_shared<SegmentStore>(table.spill));
}

bool HostedShard::insert(InsertionPtr insertion, std::function<void()> accepted, WaitOptions wait) {
  const std::scoped_lock lock(mutex_);
  return !stopped_ && shard_.insert(std::move(insertion), std::move(accepted), std::move(wait));
}

void HostedShard::sample(std::int64_t count, std::function<void(std::vector<Item>)> answer,
                         WaitOptions wait) {
  const std::scoped_lock lock(mutex_);
  if (!stopped_)
    return shard_.sample(count, std::move(answer), std::move(wait));
  if (wait.refused)
    wait.refused("the shard has stopped");
  else
    answer({});
}

void HostedShard::bypass_rate_limiter(bool bypassed) {
  const std::scoped_lock lock(mutex_);
  shard_.bypass_rate_limiter(bypassed);
}

void HostedShard::set_limiter(const RateLimiterConfig& limiter) {
  const std::scoped_lock lock(mutex_);
  shard_.set_limiter(limiter);
}

bool HostedShard::has_inserted(std::uint64_t writer, std::uint64_t sequence) const {
  const std::scoped_lock lock(mutex_);
  return shard_.table().has_inserted(writer, sequence);
}

ShardReport HostedShard::report() const {
  const std::scoped_lock lock(mutex_);
  const Table& table = shard_.table();
  return {.stats = table.stats(),
          .why_waiting = shard_.why_waiting(),
          .waiting_insertions = shard_.waiting_insertions(),
          .waiting_samples = shard_.waiting_samples(),
          .spill_error = table.spill_error(),
          .config = table.config()};
}

Deadline HostedShard::tick(Deadline now) {
  std::string stalled;
  std::string full;
  Deadline next = Deadline::max();
  {
    const std::scoped_lock lock(mutex_);
    shard_.expire(now);
    const TableStats stats = shard_.table().stats();
    const bool waits = shard_.waiting_insertions() + shard_.waiting_samples() > 0;
    if (stall_.look(waits, stats.inserted + stats.sampled, now))
      stalled = shard_.why_waiting();
    if (spills_.look(stats.failed_spills))
      full = failed_spills_text(stats.failed_spills, shard_.table().spill_error());
    next = std::min(shard_.next_deadline().value_or(next), stall_.due());
  }
  if (!full.empty() && options_.log)
    options_.log(name_ + ": " + full);
  if (!stalled.empty() && options_.log)
    options_.log(
        name_ + ": no progress for "
        + std::to_string(
            std::chrono::duration_cast<std::chrono::seconds>(options_.report_after).count())
        + " s: " + stalled);
  return next;
}

void HostedShard::stop() {
  const std::scoped_lock lock(mutex_);
  stopped_ = true;
  shard_.cancel_all();
}

void HostedShard::with_table(const std::function<void(Table&)>& use) {
  const std::scoped_lock lock(mutex_);
  use(shard_.table());
  shard_.serve_waiters();
}

ShardHandlers handlers_of(std::shared_ptr<HostedShard> shard,
                          std::function<void(const std::string&)> log) {
  ShardHandlers made;
  made.insert = [shard](InsertionPtr insertion, std::function<void()> accepted) {
    shard->insert(std::move(insertion), std::move(accepted));
  };
  made.has_inserted = [shard](std::uint64_t writer, std::uint64_t sequence) {
    return shard->has_inserted(writer, sequence);
  };
  made.sample = [shard](std::int64_t count, std::function<void(std::vector<Item>)> answer,
                        WaitOptions wait) {
    shard->sample(count, std::move(answer), std::move(wait));
  };
  made.report = [shard](const std::function<void(ShardReport)>& answer) {
    answer(shard->report());
  };
  made.update = [shard](const std::vector<std::uint64_t>& keys,
                        const std::vector<double>& priorities,
                        const std::function<void(const std::string&)>& done) {
    done(refusal_of([&] {
      shard->with_table([&](Table& table) { table.update_priorities(keys, priorities); });
    }));
  };
  made.set_limiter = [shard](const RateLimiterConfig& limiter,
                             const std::function<void(const std::string&)>& done) {
    done(refusal_of([&] { shard->set_limiter(limiter); }));
  };
  made.tick = [shard = std::move(shard)](Deadline now) { return shard->tick(now); };
  if (log)
    made.log = std::move(log);
  return made;
}

} // namespace troupe::replay
