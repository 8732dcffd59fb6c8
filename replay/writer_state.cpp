// The state of a TransitionWriter as bytes: a head, the items not yet taken, and every row that
// they or the open episode still need, oldest first.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "replay/spec_text.hpp"
#include "replay/writer.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint64_t kMagic = 0x3130545257505254U; // "TRPWRT01"

struct Head {
  std::uint64_t magic = kMagic;
  std::uint64_t spec = 0;
  std::uint64_t writer_id = 0;
  std::uint64_t next_chunk = 0;
  std::uint64_t next_item = 0;
  std::uint64_t sequence = 0;
  std::int64_t episode_step = -1;
  std::uint64_t rows = 0;
  std::uint64_t items = 0;
};

struct SavedItem {
  std::uint64_t key = 0;
  std::uint64_t first_row = 0; // counted from the first saved row
  std::uint32_t history = 0;
  std::uint32_t steps = 0;
};

static_assert(std::has_unique_object_representations_v<
                  Head> && std::has_unique_object_representations_v<SavedItem>);

template <typename T>
void put(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

[[noreturn]] void refuse(const std::string& why) {
  throw std::runtime_error("the state of a transition writer " + why);
}

template <typename T>
T take_value(std::span<const std::byte>& in) {
  if (in.size() < sizeof(T))
    refuse("is truncated");
  T value;
  std::memcpy(&value, in.data(), sizeof value);
  in = in.subspan(sizeof value);
  return value;
}

Head take_head(std::span<const std::byte>& in, const TransitionSpec& spec,
               const RowLayout& layout) {
  const auto head = take_value<Head>(in);
  if (head.magic != kMagic)
    refuse("is foreign: it does not begin as ours does");
  if (head.spec != fingerprint(spec))
    refuse("was saved for other transitions than these: " + describe(spec));
  if (head.items > in.size() / sizeof(SavedItem)
      || head.rows > (in.size() - head.items * sizeof(SavedItem)) / (layout.row_bytes + 1))
    refuse("is truncated");
  // Rows the next item of the open episode reaches back to.
  const std::int64_t reach = std::int64_t{spec.stack} - 1 + spec.n_step;
  if (head.episode_step < -1
      || static_cast<std::int64_t>(head.rows) < std::min(head.episode_step + 1, reach))
    refuse("is damaged: the open episode lacks rows");
  return head;
}

} // namespace

void TransitionWriter::save_state(std::vector<std::byte>& out) const {
  std::map<std::uint64_t, const Chunk*> chunks;
  const auto place = [&](const Item& item) {
    return item.chunks[0]->id() * capacity_ + item.begin;
  };
  const std::uint64_t end = current_ ? current_->id() * capacity_ + filled_ : 0;
  const std::int64_t reach = std::int64_t{spec_.stack} - 1 + spec_.n_step;
  std::uint64_t begin = end - static_cast<std::uint64_t>(std::min(episode_step_ + 1, reach));
  for (const auto& chunk : {previous_, current_})
    if (chunk)
      chunks[chunk->id()] = chunk.get();
  for (const ChunkRows& rows : full_rows_)
    chunks[rows.chunk->id()] = rows.chunk.get();
  for (const Item& item : items_) {
    begin = std::min(begin, place(item));
    chunks[item.chunks[0]->id()] = item.chunks[0].get();
  }
  put(out, Head{.magic = kMagic,
                .spec = fingerprint(spec_),
                .writer_id = writer_id_,
                .next_chunk = next_chunk_,
                .next_item = next_item_,
                .sequence = sequence_,
                .episode_step = episode_step_,
                .rows = end - begin,
                .items = items_.size()});
  for (const Item& item : items_)
    put(out, SavedItem{item.key, place(item) - begin, item.history, item.steps});
  for (std::uint64_t at = begin; at < end; ++at) {
    const Chunk& chunk = *chunks.at(at / capacity_);
    out.push_back(static_cast<std::byte>(chunk.flags(at % capacity_)));
    const std::byte* row = chunk.row(at % capacity_);
    out.insert(out.end(), row, row + layout_.row_bytes);
  }
}

std::span<const std::byte> TransitionWriter::load_state(std::span<const std::byte> in) {
  const Head head = take_head(in, spec_, layout_);
  std::vector<SavedItem> saved;
  for (std::uint64_t i = 0; i < head.items; ++i) {
    const auto item = take_value<SavedItem>(in);
    if (item.history >= static_cast<std::uint32_t>(spec_.stack) || item.steps < 1
        || item.steps > static_cast<std::uint32_t>(spec_.n_step) || item.first_row >= head.rows
        || item.history + item.steps + 1 > head.rows - item.first_row)
      refuse("is damaged: an item lies outside its rows");
    saved.push_back(item);
  }
  TransitionWriter fresh(spec_, head.writer_id, static_cast<int>(capacity_));
  fresh.next_chunk_ = head.next_chunk;
  fresh.next_item_ = head.next_item;
  fresh.sequence_ = head.sequence;
  fresh.episode_step_ = head.episode_step;
  std::vector<std::shared_ptr<const Chunk>> chunks;
  for (std::uint64_t i = 0; i < head.rows; ++i) {
    std::byte* row = fresh.next_frame().data();
    if (fresh.filled_ == 0)
      chunks.push_back(fresh.current_);
    fresh.current_->flags()[fresh.filled_] = static_cast<std::uint8_t>(in[0]);
    std::memcpy(row, in.data() + 1, layout_.row_bytes);
    in = in.subspan(1 + layout_.row_bytes);
    ++fresh.filled_;
  }
  for (const SavedItem& from : saved) {
    Item& item = fresh.items_.emplace_back();
    item.key = from.key;
    item.begin = static_cast<std::uint32_t>(from.first_row % capacity_);
    item.history = static_cast<std::uint16_t>(from.history);
    item.steps = static_cast<std::uint16_t>(from.steps);
    const std::size_t chunk = from.first_row / capacity_;
    item.chunks[0] = chunks[chunk];
    if (item.begin + item.rows() > capacity_)
      item.chunks[1] = chunks[chunk + 1];
  }
  *this = std::move(fresh);
  return in;
}

} // namespace troupe::replay
