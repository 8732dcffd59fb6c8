#pragma once

#include <cstdint>
#include <vector>

#include "replay/table.hpp"

namespace troupe::replay {

/// Copies each sampled item into a second table, as Reverb's insert-on-sample: what was learnt from
/// last, with its priority. The target is another table of the same signature and thread, and
/// outlives this; its limiter is not asked.
class InsertOnSample : public TableExtension {
public:
  /// Throws std::invalid_argument where the signatures differ.
  InsertOnSample(const Table& source, Table& target, std::uint64_t writer_id);
  void on_sample(Table& table, const Item& item) override;

private:
  Table* target_;
  Insertion insertion_; // of one item, used again and again
};

/// Counts what happens to items.
class TableStatistics : public TableExtension {
public:
  struct Figures {
    std::int64_t inserted = 0;
    std::int64_t sampled = 0;
    std::int64_t updated = 0;
    std::int64_t removed = 0;
    std::int64_t removed_unsampled = 0;
    double mean_times_sampled = 0; // of the removed
    double mean_sampled_age = 0;   // items inserted after the sampled one, at that time
    double mean_priority = 0;      // of those given by updates
  };

  void on_insert(Table& table, const Item& item) override;
  void on_sample(Table& table, const Item& item) override;
  void on_update(Table& table, std::uint64_t key, double before, double after) override;
  void on_remove(Table& table, std::uint64_t key, std::int64_t times_sampled) override;

  Figures figures() const;

private:
  std::int64_t inserted_ = 0, sampled_ = 0, updated_ = 0, removed_ = 0, unsampled_ = 0;
  std::int64_t removed_times_ = 0;
  double ages_ = 0, priorities_ = 0;
};

/// A change of an item's priority moves those of its neighbours in time, `reach` on either side and
/// of the same chunk, by rate^distance of it (never below 0): what made a step surprising began
/// before it.
class PriorityDiffusion : public TableExtension {
public:
  /// Throws std::invalid_argument: reach 1 to 1024, rate above 0 and below 1.
  PriorityDiffusion(int reach, double rate);
  void on_update(Table& table, std::uint64_t key, double before, double after) override;

private:
  int reach_;
  double rate_;
};

} // namespace troupe::replay
