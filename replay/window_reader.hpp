#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "replay/insertion.hpp"

namespace troupe::replay {

/// Where the rows of items lie, one item after another; those of encoded chunks are decoded into
/// memory that is used again. One thread.
class WindowReader {
public:
  /// What row() is about from now on; the item stays alive and unchanged meanwhile.
  void open(const Item& item);

  const std::byte* row(std::uint32_t k) const { // k < rows of the item
    return decoded_ ? rows_.data() + k * row_bytes_ : item_->row(k);
  }

private:
  const Item* item_ = nullptr;
  bool decoded_ = false;
  std::size_t row_bytes_ = 0;
  std::vector<std::byte> rows_;
  std::optional<CodecScratch> scratch_; // once needed
};

} // namespace troupe::replay
