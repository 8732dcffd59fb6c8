#include "replay/insertion.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>

namespace troupe::replay {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr int kMaxWindow = 4096;                                // steps
constexpr std::uint64_t kMaxRowsShown = std::uint64_t{1} << 30; // of all columns

std::size_t data_bytes(const RowLayout& layout, std::uint32_t capacity) {
  return (capacity * layout.row_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

[[noreturn]] void refuse(const std::string& field, const std::string& value,
                         const std::string& rule) {
  throw std::invalid_argument("transition spec: " + field + " is " + value + " but must be "
                              + rule);
}

void check_range(const char* field, int value, int least, int most) {
  if (value < least || value > most)
    refuse(field, std::to_string(value), std::to_string(least) + " to " + std::to_string(most));
}

} // namespace

void check(const TransitionSpec& spec) {
  if (spec.frame.shape.empty() || spec.frame.shape.size() > 8)
    refuse("frame.shape", "of rank " + std::to_string(spec.frame.shape.size()), "of rank 1 to 8");
  check_range("stack", spec.stack, 1, kMaxWindow);
  check_range("n_step", spec.n_step, 1, kMaxWindow);
  check_range("action_size", spec.action_size, 1, 1 << 20);
  if (!(spec.discount >= 0 && spec.discount <= 1))
    refuse("discount", std::to_string(spec.discount), "0 to 1");
  check(Signature(spec));
}

Chunk::Chunk(std::shared_ptr<const RowLayout> layout, std::uint64_t id, std::uint32_t capacity)
    : id_(id),
      capacity_(capacity),
      row_bytes_(layout->row_bytes),
      layout_(std::move(layout)),
      data_(
          static_cast<std::byte*>(std::aligned_alloc(kAlignment, data_bytes(*layout_, capacity)))),
      flags_(std::make_unique<std::uint8_t[]>(capacity)) {
  if (!data_)
    throw std::bad_alloc();
}

Chunk::Chunk(const Chunk& raw, std::uint32_t low, std::uint32_t high,
             std::span<const ColumnPlan> plans, CodecScratch& scratch)
    : id_(raw.id_),
      capacity_(raw.capacity_),
      row_bytes_(raw.row_bytes_),
      layout_(raw.layout_),
      flags_(std::make_unique<std::uint8_t[]>(raw.capacity_)),
      low_(low) {
  std::copy_n(raw.flags(), capacity_, flags_.get());
  for (std::size_t i = 0; i < plans.size(); ++i)
    columns_.push_back(EncodedColumn::encode(
        column_shape(layout_->signature.columns[i]),
        {raw.row(low) + layout_->columns[i].offset, row_bytes_, high - low}, plans[i], scratch));
}

void Chunk::decode(std::uint32_t first, std::uint32_t count, std::byte* out,
                   CodecScratch& scratch) const {
  if (!encoded()) {
    std::memcpy(out, row(first), count * row_bytes_);
    return;
  }
  if (first < low_)
    throw std::out_of_range("row " + std::to_string(first) + " of a chunk that has those from "
                            + std::to_string(low_) + " on");
  for (std::size_t i = 0; i < columns_.size(); ++i)
    columns_[i].decode(first - low_, count, out + layout_->columns[i].offset, row_bytes_, scratch);
}

std::size_t Chunk::bytes() const {
  if (encoded())
    return std::accumulate(columns_.begin(), columns_.end(), capacity_ + sizeof(Chunk),
                           [](std::size_t sum, const EncodedColumn& c) { return sum + c.bytes(); });
  return data_bytes(*layout_, capacity_) + capacity_ + sizeof(Chunk);
}

void Chunk::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

bool fits(const ItemShape& shape, std::size_t columns, std::uint32_t rows) {
  if (shape.columns.size() != columns)
    return false;
  std::uint64_t shown = 0;
  for (const std::vector<Slice>& slices : shape.columns)
    for (const Slice& slice : slices) {
      shown += slice.count;
      if (std::uint64_t{slice.first} + slice.count > rows || shown > kMaxRowsShown)
        return false;
    }
  return true;
}

std::uint32_t rows_shown(const ItemShape* shape, std::size_t column, std::uint32_t rows) {
  if (shape == nullptr)
    return rows;
  const std::vector<Slice>& slices = shape->columns[column];
  return std::accumulate(slices.begin(), slices.end(), std::uint32_t{0},
                         [](std::uint32_t sum, const Slice& slice) { return sum + slice.count; });
}

} // namespace troupe::replay
