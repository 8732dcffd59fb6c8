#pragma once

#include <cstdint>
#include <string>

namespace troupe::replay {

/// Decides when to log TableStats::failed_spills: at the first failure and whenever the count has
/// at least doubled. If the count falls, the shard was restarted, and this starts over.
class SpillWatch {
public:
  bool look(std::int64_t failed) {
    if (failed < seen_)
      logged_ = 0;
    seen_ = failed;
    if (failed == 0 || failed < 2 * logged_)
      return false;
    logged_ = failed;
    return true;
  }

private:
  std::int64_t seen_ = 0;
  std::int64_t logged_ = 0;
};

inline std::string failed_spills_text(std::int64_t failed, const std::string& error) {
  return std::to_string(failed) + (failed == 1 ? " chunk" : " chunks")
         + " could not be written to disk, and items were removed instead: " + error;
}

} // namespace troupe::replay
