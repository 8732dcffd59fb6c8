#include "replay/shard_host.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe::replay {

namespace {

/// "" or why `change` is refused.
template <typename Change>
std::string refusal_of(Change change) {
  try {
    change();
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

const ShardHostOptions& restored(const ShardHostOptions& options, Table& table) {
  if (options.restore)
    options.restore(table);
  return options;
}

} // namespace

ShardHost::ShardHost(env::wire::Context& context, const TableConfig& config,
                     const Signature& signature, std::uint64_t seed,
                     const ShardHostOptions& options)
    : options_(options),
      shard_(config, signature, seed, options.limits),
      watch_(options.report_after),
      server_(context, signature, handlers(), restored(options, shard_.table()).server) {}

ShardHandlers ShardHost::handlers() {
  ShardHandlers made;
  made.insert = [this](InsertionPtr insertion, std::function<void()> accepted) {
    const std::scoped_lock lock(mutex_);
    shard_.insert(std::move(insertion), std::move(accepted));
  };
  made.sample = [this](std::int64_t count, std::function<void(std::vector<Item>)> answer,
                       Patience patience) {
    const std::scoped_lock lock(mutex_);
    shard_.sample(count, std::move(answer), std::move(patience));
  };
  made.stats = [this](const std::function<void(TableStats)>& answer) { answer(stats()); };
  made.update = [this](const std::vector<std::uint64_t>& keys,
                       const std::vector<double>& priorities,
                       const std::function<void(const std::string&)>& done) {
    done(refusal_of([&] {
      const std::scoped_lock lock(mutex_);
      shard_.table().update_priorities(keys, priorities);
    }));
  };
  made.set_limiter = [this](const LimiterConfig& limiter,
                            const std::function<void(const std::string&)>& done) {
    done(refusal_of([&] { set_limiter(limiter); }));
  };
  made.tick = [this](Deadline now) { return tick(now); };
  made.log = options_.log;
  return made;
}

Deadline ShardHost::tick(Deadline now) {
  std::string stalled;
  Deadline next = Deadline::max();
  {
    const std::scoped_lock lock(mutex_);
    shard_.expire(now);
    const TableStats stats = shard_.table().stats();
    const bool waits = shard_.waiting_insertions() + shard_.waiting_samples() > 0;
    if (watch_.look(waits, stats.inserted + stats.sampled, now))
      stalled = shard_.why_waiting();
    next = shard_.next_deadline().value_or(next);
  }
  if (!stalled.empty() && options_.log)
    options_.log(
        "replay shard: no progress for "
        + std::to_string(
            std::chrono::duration_cast<std::chrono::seconds>(options_.report_after).count())
        + " s: " + stalled);
  return std::min(next, watch_.due());
}

TableStats ShardHost::stats() const {
  const std::scoped_lock lock(mutex_);
  return shard_.table().stats();
}

std::string ShardHost::why_waiting() const {
  const std::scoped_lock lock(mutex_);
  return shard_.why_waiting();
}

void ShardHost::set_limiter(const LimiterConfig& limiter) {
  const std::scoped_lock lock(mutex_);
  shard_.set_limiter(limiter);
}

void ShardHost::with_table(const std::function<void(Table&)>& use) {
  const std::scoped_lock lock(mutex_);
  use(shard_.table());
  shard_.move_on();
}

} // namespace troupe::replay
