#include "replay/chunks/chunk.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::replay {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::int64_t kChunksPerPlan = 256; // chunks encoded before new plans are chosen

std::size_t data_bytes(const RowLayout& layout, std::uint32_t capacity) {
  return capacity * layout.row_bytes;
}

struct PackedHead {
  std::uint32_t columns = 0;
  std::uint32_t rows = 0;
};

/// Reads the bytes of a packed chunk one after another.
class Cursor {
public:
  explicit Cursor(std::span<const std::byte> bytes) : left_(bytes) {}

  std::span<const std::byte> take(std::uint64_t size) {
    if (size > left_.size())
      damaged();
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  template <class Value>
  void read(Value& value) {
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  bool empty() const { return left_.empty(); }
  [[noreturn]] static void damaged() {
    throw std::runtime_error("a stored chunk is damaged: its parts do not match");
  }

private:
  std::span<const std::byte> left_;
};

} // namespace

Chunk::Chunk(std::shared_ptr<const RowLayout> layout, std::uint64_t id, std::uint32_t capacity)
    : id_(id),
      capacity_(capacity),
      row_bytes_(layout->row_bytes),
      layout_(std::move(layout)),
      // Not aligned_alloc(): glibc before 2.38 does not reuse its freed blocks.
      data_(static_cast<std::byte*>(std::malloc(data_bytes(*layout_, capacity)))),
      // The system allocates these pages only when rows are written, so a remote writer's chunk
      // takes only the memory that it fills.
      raw_flags_(static_cast<std::uint8_t*>(std::calloc(capacity, 1))) {
  if (!data_ || !raw_flags_)
    throw std::bad_alloc();
}

Chunk::Chunk(const Chunk& raw, std::uint32_t low, std::uint32_t high,
             std::span<const ColumnPlan> plans, CodecScratch& scratch)
    : id_(raw.id_),
      capacity_(raw.capacity_),
      row_bytes_(raw.row_bytes_),
      layout_(raw.layout_),
      flags_(raw.flags() + low, raw.flags() + high),
      low_(low),
      high_(high) {
  columns_.reserve(plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i)
    columns_.push_back(EncodedColumn::encode(
        column_shape(layout_->signature.columns[i]),
        {raw.row(low) + layout_->columns[i].offset, row_bytes_, high - low}, plans[i], scratch));
}

Chunk::Chunk(const ChunkRange& range, std::span<const std::byte> packed)
    : Chunk(range, nullptr, BlobRef()) {
  unpack(packed, flags_, columns_);
}

Chunk::Chunk(const ChunkRange& range, std::shared_ptr<SegmentStore> store, const BlobRef& ref)
    : id_(range.id),
      capacity_(range.capacity),
      row_bytes_(range.layout->row_bytes),
      layout_(range.layout),
      low_(range.low),
      high_(range.high),
      store_(std::move(store)),
      ref_(ref) {}

Chunk::~Chunk() {
  if (store_)
    store_->release(ref_);
}

void Chunk::unpack(std::span<const std::byte> packed, std::vector<std::uint8_t>& flags,
                   std::vector<EncodedColumn>& columns) const {
  Cursor cursor(packed);
  PackedHead head;
  cursor.read(head);
  if (head.columns != layout_->columns.size() || head.rows != high_ - low_)
    Cursor::damaged();
  std::vector<std::uint64_t> sizes(head.columns);
  for (std::uint64_t& size : sizes)
    cursor.read(size);
  flags.resize(head.rows);
  std::memcpy(flags.data(), cursor.take(head.rows).data(), head.rows);
  columns.reserve(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    columns.push_back(EncodedColumn::parse(cursor.take(sizes[i]),
                                           column_shape(layout_->signature.columns[i]), head.rows));
    if (columns.back().rows() != head.rows)
      Cursor::damaged();
  }
  if (!cursor.empty())
    Cursor::damaged();
}

std::vector<std::byte> Chunk::packed() const {
  std::vector<std::byte> out;
  if (on_disk()) {
    out.resize(ref_.size());
    store_->read(ref_, out);
    return out;
  }
  std::size_t size = sizeof(PackedHead) + columns_.size() * sizeof(std::uint64_t) + flags_.size();
  for (const EncodedColumn& column : columns_)
    size += column.serialized().size();
  out.resize(size);
  std::byte* at = out.data();
  const auto put = [&at](const void* data, std::size_t bytes) {
    std::memcpy(at, data, bytes);
    at += bytes;
  };
  const PackedHead head{static_cast<std::uint32_t>(columns_.size()), high_ - low_};
  put(&head, sizeof head);
  for (const EncodedColumn& column : columns_) {
    const std::uint64_t bytes = column.serialized().size();
    put(&bytes, sizeof bytes);
  }
  put(flags_.data(), flags_.size());
  for (const EncodedColumn& column : columns_)
    put(column.serialized().data(), column.serialized().size());
  return out;
}

std::vector<std::uint8_t> Chunk::encoded_flags() const {
  if (!on_disk())
    return flags_;
  std::vector<std::uint8_t> flags;
  std::vector<EncodedColumn> columns;
  unpack(packed(), flags, columns);
  return flags;
}

void Chunk::decode(std::uint32_t first, std::uint32_t count, std::byte* out,
                   CodecScratch& scratch) const {
  if (!encoded()) {
    std::memcpy(out, row(first), count * row_bytes_);
    return;
  }
  if (first < low_)
    throw std::out_of_range("row " + std::to_string(first) + " of a chunk whose rows begin at "
                            + std::to_string(low_));
  std::vector<std::uint8_t> flags;
  std::vector<EncodedColumn> read;
  if (on_disk())
    unpack(packed(), flags, read);
  const std::vector<EncodedColumn>& columns = on_disk() ? read : columns_;
  for (std::size_t i = 0; i < columns.size(); ++i)
    columns[i].decode(first - low_, count, out + layout_->columns[i].offset, row_bytes_, scratch);
}

std::size_t Chunk::bytes() const {
  std::size_t sum = (data_ ? capacity_ : flags_.size()) + sizeof(Chunk);
  for (const EncodedColumn& column : columns_)
    sum += column.bytes();
  return data_ ? sum + data_bytes(*layout_, capacity_) : sum;
}

void Chunk::Free::operator()(void* memory) const {
  std::free(memory);
}

std::shared_ptr<Chunk> ChunkEncoder::encode(const Chunk& raw, std::uint32_t low,
                                            std::uint32_t high) {
  if (encoded_++ % kChunksPerPlan == 0) {
    plans_.clear();
    const RowLayout& layout = raw.layout();
    for (std::size_t i = 0; i < layout.columns.size(); ++i)
      plans_.push_back(
          plan_column(column_shape(layout.signature.columns[i]),
                      {raw.row(low) + layout.columns[i].offset, layout.row_bytes, high - low},
                      compression_, scratch_));
  }
  return std::make_shared<Chunk>(raw, low, high, plans_, scratch_);
}

std::shared_ptr<Chunk> ChunkEncoder::decode(const Chunk& encoded, std::uint32_t low,
                                            std::uint32_t high) {
  auto raw = std::make_shared<Chunk>(encoded.shared_layout(), encoded.id(), encoded.capacity());
  encoded.decode(low, high - low, raw->row(low), scratch_);
  const std::vector<std::uint8_t> flags = encoded.encoded_flags();
  std::copy(flags.begin(), flags.end(), raw->flags() + low);
  return raw;
}

} // namespace troupe::replay
