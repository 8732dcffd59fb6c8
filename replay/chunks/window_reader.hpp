#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "replay/chunks/insertion.hpp"

namespace troupe::replay {

/// Gives the rows of one item at a time; decodes those of encoded chunks into reused memory. One
/// thread.
class WindowReader {
public:
  /// Selects the item of row(), which must stay alive and unchanged meanwhile.
  void open(const Item& item);

  const std::byte* row(std::uint32_t k) const { // k < rows of the item
    return decoded_ ? rows_.data() + k * row_bytes_ : item_->row(k);
  }

private:
  const Item* item_ = nullptr;
  bool decoded_ = false;
  std::size_t row_bytes_ = 0;
  std::vector<std::byte> rows_;
  std::optional<CodecScratch> scratch_; // if needed
};

} // namespace troupe::replay
