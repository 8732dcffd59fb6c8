#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace troupe::learner::data {

/// Called for each bad row when it is found, on any thread, one call at a time. Must not throw.
using TellBadRow = std::function<void(const std::string& message)>;

/// Limits how many rows of a data set may be bad before it is refused. The next good row, by
/// number, replaces a bad one, so that any number of replicas see the same data. Any thread.
class RowErrorPolicy {
public:
  static constexpr std::size_t kMessages = 8; // how many messages are kept

  /// `tolerate` is a fraction of the rows. Throws std::invalid_argument if it is not from 0 to 1.
  RowErrorPolicy(std::int64_t rows, double tolerate, TellBadRow tell);

  /// Counts each row once. Throws DataError with this message if more rows are bad than tolerated.
  void add(std::int64_t row, const std::string& message);
  bool contains(std::int64_t row) const;
  std::int64_t count() const;
  std::vector<std::string> messages() const; // about the first bad rows

private:
  const std::int64_t rows_;
  const double tolerate_;
  const TellBadRow tell_;
  mutable std::mutex mutex_; // guards all members below
  std::set<std::int64_t> bad_;
  std::vector<std::string> messages_;
};

} // namespace troupe::learner::data
