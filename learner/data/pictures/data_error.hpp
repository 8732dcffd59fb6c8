#pragma once

#include <stdexcept>

namespace troupe::learner::data {

/// Data that do not conform to their format. The message names the file and the row, line or byte.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The system failed to read several times in a row. This says nothing about the data, so no row
/// counts as bad. The message names the file and the system's reason.
struct ReadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace troupe::learner::data
