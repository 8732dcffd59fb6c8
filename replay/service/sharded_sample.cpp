#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "replay/batch/gather.hpp"
#include "replay/service/sharded_client.hpp"
#include "replay/service/sharded_client_shard.hpp"
#include "replay/service/share_rows.hpp"
#include "replay/table/selector.hpp"

namespace troupe::replay {

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kShardBits = 48; // bits of the key in the shard, below the shard's number
constexpr std::uint64_t kMostKey = (std::uint64_t{1} << kShardBits) - 1;

} // namespace

std::optional<std::int64_t> ShardedClient::sample(std::int64_t count, const BatchView& batch,
                                                  std::int64_t first_row, Deadline deadline,
                                                  std::chrono::milliseconds patience) {
  check(spec_, batch, first_row, count);
  if (count < 1)
    throw std::invalid_argument("a sample of " + std::to_string(count)
                                + " items: at least 1 is needed");
  tend(Clock::now());
  const void* const into = batch.key.data() + first_row;
  if (plan_.count != count)
    drop_plan();
  plan_.count = count;
  for (Part& part : plan_.parts) // parts received so far are in another batch buffer
    part.done = part.done && plan_.into == into;
  plan_.into = into;
  for (;;) {
    if (plan_.parts.empty()) {
      if (!share_out(deadline))
        return std::nullopt;
      for (const Part& part : plan_.parts) // all requests at once; answers arrive in any order
        part.shard->client->request_sample(part.rows, patience);
    }
    switch (collect(batch, first_row, deadline, patience)) {
    case Outcome::done:
      put_items(batch, first_row);
      plan_.parts.clear();
      return count;
    case Outcome::late:
      return std::nullopt;
    case Outcome::lost:
      break;
    }
  }
}

/// Plans the parts as soon as some shard can be sampled. Returns false at the deadline.
bool ShardedClient::share_out(Deadline deadline) {
  for (bool due = batches_++ % std::max<std::int64_t>(1, options_.statistics_every) == 0;;
       due = true) {
    refresh(due, deadline);
    plan_parts();
    if (!plan_.parts.empty())
      return true;
    if (Clock::now() >= deadline) {
      if (!any_lives())
        fail_without_shards();
      return false;
    }
    rest(deadline);
  }
}

/// Requests statistics from all living shards or, without `all`, only where there are none yet. A
/// question that is open at the deadline stays open, and a later call takes its answer.
void ShardedClient::refresh(bool all, Deadline deadline) {
  const auto take = [](Shard& shard) {
    shard.stats = shard.client->last_stats();
    shard.known = true;
  };
  std::vector<Shard*> asked;
  for (const auto& shard : shards_) {
    if (!shard->lives)
      continue;
    const bool open = std::exchange(shard->asks_stats, false);
    if (open && shard->client->answered()) {
      take(*shard);
    } else if (open || all || !shard->known) {
      if (!open)
        shard->client->ask_stats();
      shard->asks_stats = true;
      if (all || !shard->known)
        asked.push_back(shard.get());
    }
  }
  for (Shard* shard : asked) {
    shard->asks_stats = false; // also if the question is refused
    if (await(*shard, deadline))
      take(*shard);
    else
      shard->asks_stats = shard->lives;
  }
}

void ShardedClient::plan_parts() {
  std::vector<double> weights;
  for (const auto& shard : shards_)
    weights.push_back(shard->gives() ? shard->stats.sampling_weight : 0);
  std::vector<std::int64_t> rows(weights.size());
  if (!share_rows(weights, plan_.count, random_.unit(), rows))
    return;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::int64_t first = 0;
  for (std::size_t s = 0; s < rows.size(); first += rows[s++])
    if (rows[s] > 0)
      plan_.parts.push_back({.shard = shards_[s].get(),
                             .first = first,
                             .rows = rows[s],
                             .share = weights[s] / total});
}

void ShardedClient::drop_plan() {
  for (const Part& part : plan_.parts)
    part.shard->client->cancel_sample();
  plan_.parts.clear();
}

ShardedClient::Outcome ShardedClient::collect(const BatchView& batch, std::int64_t first_row,
                                              Deadline deadline,
                                              std::chrono::milliseconds patience) {
  for (Part& part : plan_.parts) {
    if (part.done)
      continue;
    std::optional<std::int64_t> got;
    const std::int64_t first = first_row + part.first;
    // If this calls leave(), all parts are cleared, including this one.
    if (!attempt(*part.shard, [&] {
          got = part.shard->client->sample(part.rows, batch, first, deadline, patience);
        }))
      return Outcome::lost;
    if (!got)
      return Outcome::late;
    part.done = true;
    finish(part, batch, first);
  }
  return Outcome::done;
}

void ShardedClient::finish(const Part& part, const BatchView& batch, std::int64_t first_row) {
  const auto begin = static_cast<std::size_t>(first_row);
  const auto end = begin + static_cast<std::size_t>(part.rows);
  for (std::size_t row = begin; row < end; ++row) {
    if (batch.key[row] > kMostKey)
      throw std::runtime_error("replay shard at " + part.shard->address.endpoint + " has a key of "
                               + std::to_string(batch.key[row]) + ", above 2^48");
    batch.key[row] |= part.shard->number << kShardBits;
    if (!batch.probability.empty())
      batch.probability[row] *= part.share;
  }
  if (!batch.table_items.empty())
    part.shard->stats.items = batch.table_items[end - 1];
}

void ShardedClient::put_items(const BatchView& batch, std::int64_t first_row) const {
  if (batch.table_items.empty())
    return;
  std::int64_t items = 0;
  for (const auto& shard : shards_)
    items += shard->gives() ? shard->stats.items : 0;
  const auto most = std::int64_t{std::numeric_limits<std::uint32_t>::max()};
  std::fill_n(batch.table_items.begin() + first_row, plan_.count,
              static_cast<std::uint32_t>(std::min(items, most)));
}

void ShardedClient::update_priorities(std::span<const std::uint64_t> keys,
                                      std::span<const double> priorities, Deadline deadline) {
  check_counts(keys.size(), priorities.size());
  tend(Clock::now());
  std::size_t taken = 0;
  std::vector<std::pair<Shard*, std::size_t>> asked; // shards and the number of their priorities
  for (const auto& shard : shards_) {
    std::vector<std::uint64_t> mine;
    std::vector<double> values;
    for (std::size_t i = 0; shard->lives && i < keys.size(); ++i)
      if (keys[i] >> kShardBits == shard->number) {
        mine.push_back(keys[i] & kMostKey);
        values.push_back(priorities[i]);
      }
    if (mine.empty())
      continue;
    shard->client->ask_update(mine, values);
    shard->asks_stats = false; // replaced by this question
    asked.emplace_back(shard.get(), mine.size());
  }
  for (const auto& [shard, count] : asked) {
    if (await(*shard, deadline))
      taken += count;
    else if (shard->lives)
      throw std::runtime_error("replay shard at " + shard->address.endpoint
                               + " gave no answer before the deadline: priorities to be accepted");
  }
  counters_.lost_priorities += static_cast<std::int64_t>(keys.size() - taken);
}

} // namespace troupe::replay
