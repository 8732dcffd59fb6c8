#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "replay/chunks/insertion.hpp"

namespace troupe::replay {

/// Returns the rows of one item at a time; rows of encoded chunks are decoded into reused memory.
/// Used by one thread at a time.
class WindowReader {
public:
  /// Selects the item for row(). It must stay alive and unchanged while it is read.
  void open(const Item& item);

  const std::byte* row(std::uint32_t k) const { // k < rows of the item
    return decoded_ ? rows_.data() + k * row_bytes_ : item_->row(k);
  }

private:
  const Item* item_ = nullptr;
  bool decoded_ = false;
  std::size_t row_bytes_ = 0;
  std::vector<std::byte> rows_;
  std::optional<CodecScratch> scratch_; // created when first needed
};

} // namespace troupe::replay
