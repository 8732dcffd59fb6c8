#include "replay/extensions.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace troupe::replay {

InsertOnSample::InsertOnSample(const Table& source, Table& target, std::uint64_t writer_id)
    : target_(&target) {
  if (const std::string why = difference(target.signature(), source.signature()); !why.empty())
    throw std::invalid_argument(
        "insert-on-sample: the target does not store what the source gives: " + why
        + "; give both one signature");
  if (&source == &target)
    throw std::invalid_argument("insert-on-sample: source and target are one table; name another");
  insertion_.writer_id = writer_id;
  insertion_.items.resize(1);
}

void InsertOnSample::on_sample(Table&, const Item& item) {
  ++insertion_.sequence;
  insertion_.items[0] = item;
  target_->insert(insertion_);
}

void TableStatistics::on_insert(Table&, const Item&) {
  ++inserted_;
}

void TableStatistics::on_sample(Table& table, const Item& item) {
  ++sampled_;
  ages_ += static_cast<double>(table.stats().inserted - 1) - static_cast<double>(item.key);
}

void TableStatistics::on_update(Table&, std::uint64_t, double, double after) {
  ++updated_;
  priorities_ += after;
}

void TableStatistics::on_remove(Table&, std::uint64_t, std::int64_t times_sampled) {
  ++removed_;
  removed_times_ += times_sampled;
  unsampled_ += times_sampled == 0 ? 1 : 0;
}

TableStatistics::Figures TableStatistics::figures() const {
  const auto mean = [](double sum, std::int64_t count) {
    return count == 0 ? 0 : sum / static_cast<double>(count);
  };
  return {.inserted = inserted_,
          .sampled = sampled_,
          .updated = updated_,
          .removed = removed_,
          .removed_unsampled = unsampled_,
          .mean_times_sampled = mean(static_cast<double>(removed_times_), removed_),
          .mean_sampled_age = mean(ages_, sampled_),
          .mean_priority = mean(priorities_, updated_)};
}

PriorityDiffusion::PriorityDiffusion(int reach, double rate) : reach_(reach), rate_(rate) {
  if (reach < 1 || reach > 1024 || !(rate > 0 && rate < 1))
    throw std::invalid_argument("priority diffusion: reach is " + std::to_string(reach)
                                + " and rate " + std::to_string(rate)
                                + " but must be 1 to 1024 and above 0, below 1");
}

void PriorityDiffusion::on_update(Table& table, std::uint64_t key, double before, double after) {
  const Item centre = table.item(key);
  const auto spread = [&](std::uint64_t neighbour, double change) {
    if (!table.contains(neighbour))
      return;
    const Item near = table.item(neighbour);
    if (near.chunks[0] == centre.chunks[0])
      table.set_priority(neighbour, std::clamp(near.priority + change, 0.0, kMaxPriority));
  };
  double change = after - before;
  for (std::uint64_t distance = 1; distance <= static_cast<std::uint64_t>(reach_); ++distance) {
    change *= rate_;
    if (key >= distance)
      spread(key - distance, change);
    spread(key + distance, change);
  }
}

} // namespace troupe::replay
