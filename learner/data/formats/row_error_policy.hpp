#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace troupe::learner::data {

/// Called for each bad row when it is found, from any thread, one at a time; must not throw.
using TellBadRow = std::function<void(const std::string& message)>;

/// How many rows of a data set may be bad before it is refused. The next good row, by number,
/// replaces a bad one, so that any number of replicas see the same. Any thread.
class RowErrorPolicy {
public:
  static constexpr std::size_t kMessages = 8; // that are kept

  /// `tolerate` is the fraction of rows. Throws std::invalid_argument when it is not from 0 to 1.
  RowErrorPolicy(std::int64_t rows, double tolerate, TellBadRow tell);

  /// Counts a row once. Throws DataError when there are more than is tolerated: with this message.
  void add(std::int64_t row, const std::string& message);
  bool contains(std::int64_t row) const;
  std::int64_t count() const;
  std::vector<std::string> messages() const; // of the first

private:
  const std::int64_t rows_;
  const double tolerate_;
  const TellBadRow tell_;
  mutable std::mutex mutex_; // of all below
  std::set<std::int64_t> bad_;
  std::vector<std::string> messages_;
};

} // namespace troupe::learner::data
