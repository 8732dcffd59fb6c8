#include "learner/data/formats/row_error_policy.hpp"

#include <stdexcept>
#include <utility>

#include "learner/data/pictures/data_error.hpp"

namespace troupe::learner::data {

RowErrorPolicy::RowErrorPolicy(std::int64_t rows, double tolerate, TellBadRow tell)
    : rows_(rows), tolerate_(tolerate), tell_(std::move(tell)) {
  if (!(tolerate >= 0 && tolerate <= 1))
    throw std::invalid_argument("tolerate: " + std::to_string(tolerate)
                                + " must be a fraction of the rows, from 0 to 1");
}

void RowErrorPolicy::add(std::int64_t row, const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (bad_.insert(row).second) {
    if (messages_.size() < kMessages)
      messages_.push_back(message);
    if (tell_)
      tell_(message);
  }
  if (static_cast<double>(bad_.size()) <= tolerate_ * static_cast<double>(rows_))
    return;
  std::string text = message;
  text += "; " + std::to_string(bad_.size()) + " of " + std::to_string(rows_)
          + " rows are bad, and tolerate is " + std::to_string(tolerate_)
          + ". Repair it (`troupe dataset check` lists all), or tolerate a larger fraction";
  throw DataError(text);
}

bool RowErrorPolicy::contains(std::int64_t row) const {
  const std::lock_guard lock(mutex_);
  return bad_.contains(row);
}

std::int64_t RowErrorPolicy::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(bad_.size());
}

std::vector<std::string> RowErrorPolicy::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

} // namespace troupe::learner::data
