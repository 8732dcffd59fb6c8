#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "replay/chunks/remembered.hpp"

namespace troupe::replay {

/// Remembers which insertions of each writer a table has accepted, so that it accepts none twice.
/// Keeps the 65,536 most recently used writers and the last 64 sequence numbers of each.
class WriterSequences {
public:
  WriterSequences() = default;
  WriterSequences(WriterSequences&&) = default;
  WriterSequences& operator=(WriterSequences&&) = default;

  struct Seen {
    std::uint64_t newest = 0;
    std::uint64_t mask = 0; // bit i: newest - i was accepted
    std::uint64_t used = 0; // number of insertions into the table before this writer's last one
  };

  /// Accepts an insertion. Returns false if it was accepted before, or if its sequence number is 64
  /// or more below the writer's newest.
  bool accept(std::uint64_t writer, std::uint64_t sequence) {
    Seen& seen = seen_of(writer);
    if (contains(seen, sequence))
      return false;
    if (seen.mask == 0 || sequence > seen.newest) {
      const std::uint64_t ahead = sequence - seen.newest;
      seen.mask = (seen.mask == 0 || ahead >= 64 ? 0 : seen.mask << ahead) | 1U;
      seen.newest = sequence;
      return true;
    }
    seen.mask |= std::uint64_t{1} << (seen.newest - sequence);
    return true;
  }

  /// Returns whether accept() would return false.
  bool has(std::uint64_t writer, std::uint64_t sequence) const {
    const auto at = writers_.find(writer);
    return at != writers_.end() && contains(at->second, sequence);
  }

  const std::unordered_map<std::uint64_t, Seen>& writers() const { return writers_; }
  std::uint64_t insertions() const { return insertions_; }

  void restore(std::uint64_t insertions) { insertions_ = insertions; }
  void restore(std::uint64_t writer, const Seen& seen) { writers_[writer] = seen; }

private:
  static bool contains(const Seen& seen, std::uint64_t sequence) {
    if (seen.mask == 0 || sequence > seen.newest)
      return false;
    const std::uint64_t behind = seen.newest - sequence;
    return behind >= 64 || (seen.mask >> behind & 1U) != 0;
  }
  Seen& seen_of(std::uint64_t writer) {
    if (last_ == nullptr || last_->first != writer) { // usually the same writer inserts again
      remember(writers_, writer, kMaxWriters, insertions_);
      last_ = &*writers_.find(writer);
    }
    last_->second.used = insertions_++;
    return last_->second;
  }

  static constexpr std::size_t kMaxWriters = 65'536;
  std::unordered_map<std::uint64_t, Seen> writers_;
  // The writer of the last insertion, in writers_
  std::pair<const std::uint64_t, Seen>* last_ = nullptr;
  std::uint64_t insertions_ = 0;
};

} // namespace troupe::replay
