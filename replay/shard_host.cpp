#include "replay/shard_host.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "replay/stall_watch.hpp"

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

} // namespace

/// One of the shards behind its lock.
class ShardHost::Hosted {
public:
  Hosted(const HostedTable& table, std::size_t number, const ShardHostOptions& options)
      : name_(table.name.empty() ? "replay shard" : "replay table \"" + table.name + "\""),
        options_(options),
        shard_(table.config, table.signature, table.seed, options.limits),
        watch_(options.report_after) {
    if (!table.spill.folder.empty())
      shard_.table().spill_to(std::make_shared<SegmentStore>(table.spill));
    if (options.restore)
      options.restore(number, shard_.table());
  }

  ShardHandlers handlers();

  TableStats stats() const {
    const std::scoped_lock lock(mutex_);
    return shard_.table().stats();
  }
  ShardReport report() const {
    const std::scoped_lock lock(mutex_);
    return {shard_.table().stats(), shard_.why_waiting(), shard_.table().config()};
  }
  void set_limiter(const LimiterConfig& limiter) {
    const std::scoped_lock lock(mutex_);
    shard_.set_limiter(limiter);
  }
  void with_table(const std::function<void(Table&)>& use) {
    const std::scoped_lock lock(mutex_);
    use(shard_.table());
    shard_.move_on();
  }

private:
  Deadline tick(Deadline now);

  std::string name_;
  const ShardHostOptions& options_;
  mutable std::mutex mutex_; // of shard_
  Shard shard_;
  StallWatch watch_;         // the server's thread's, as the next
  bool spills_fail_ = false; // and that was logged
};

ShardHandlers ShardHost::Hosted::handlers() {
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
  made.report = [this](const std::function<void(ShardReport)>& answer) { answer(report()); };
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

Deadline ShardHost::Hosted::tick(Deadline now) {
  std::string stalled;
  std::string full;
  Deadline next = Deadline::max();
  {
    const std::scoped_lock lock(mutex_);
    shard_.expire(now);
    const TableStats stats = shard_.table().stats();
    const bool waits = shard_.waiting_insertions() + shard_.waiting_samples() > 0;
    if (watch_.look(waits, stats.inserted + stats.sampled, now))
      stalled = shard_.why_waiting();
    next = shard_.next_deadline().value_or(next);
    if (stats.failed_spills > 0 && !spills_fail_)
      full = shard_.table().spill_error();
    spills_fail_ = stats.failed_spills > 0;
  }
  if (!full.empty() && options_.log)
    options_.log(name_
                 + ": items leave, for what memory has no room for cannot go to disk: " + full);
  if (!stalled.empty() && options_.log)
    options_.log(
        name_ + ": no progress for "
        + std::to_string(
            std::chrono::duration_cast<std::chrono::seconds>(options_.report_after).count())
        + " s: " + stalled);
  return std::min(next, watch_.due());
}

ShardHost::ShardHost(env::wire::Context& context, const TableConfig& config,
                     const Signature& signature, std::uint64_t seed,
                     const ShardHostOptions& options)
    : ShardHost(context,
                {HostedTable{.name = "", .config = config, .signature = signature, .seed = seed}},
                options) {}

ShardHost::ShardHost(env::wire::Context& context, const std::vector<HostedTable>& tables,
                     const ShardHostOptions& options)
    : options_(options), server_(context, served(tables), options.server) {}

ShardHost::~ShardHost() = default;

std::vector<ServedTable> ShardHost::served(const std::vector<HostedTable>& tables) {
  std::vector<ServedTable> made;
  for (const HostedTable& table : tables) {
    shards_.push_back(std::make_unique<Hosted>(table, shards_.size(), options_));
    made.push_back(
        {.name = table.name,
         .signature = table.signature,
         .handlers = shards_.back()->handlers(),
         .transitions = tables.size() == 1 ? options_.server.transitions : std::nullopt});
  }
  return made;
}

TableStats ShardHost::stats(std::size_t table) const {
  return shards_.at(table)->stats();
}

std::string ShardHost::why_waiting(std::size_t table) const {
  return shards_.at(table)->report().why_waiting;
}

void ShardHost::set_limiter(const LimiterConfig& limiter, std::size_t table) {
  shards_.at(table)->set_limiter(limiter);
}

void ShardHost::with_table(const std::function<void(Table&)>& use, std::size_t table) {
  shards_.at(table)->with_table(use);
}

} // namespace troupe::replay
