#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "replay/spec.hpp"

namespace troupe::replay {

/// Throws std::invalid_argument naming the field, its value and the rule.
void check(const TransitionSpec& spec);

/// Where the parts of one row lie, in bytes from its beginning. A row is one time step: the frame
/// it shows and the action, reward and discount of the step that led to it (0, 0, 1 in the first
/// row of an episode).
struct RowLayout {
  explicit RowLayout(const TransitionSpec& spec);

  std::size_t frame_bytes = 0;
  std::size_t action_size = 0; // floats
  std::size_t action = 0;
  std::size_t reward = 0;
  std::size_t discount = 0;
  std::size_t row_bytes = 0; // distance of two rows, a multiple of 16
};

/// A block of rows of one writer, allocated once. The writer fills it row by row; a row that an
/// Insertion names never changes again, so any thread may read it without a lock.
class Chunk {
public:
  enum Flag : std::uint8_t { kFirst = 1, kLast = 2 };

  Chunk(const TransitionSpec& spec, std::uint64_t id, std::uint32_t capacity);

  std::uint64_t id() const { return id_; } // counts up within its writer
  std::uint32_t capacity() const { return capacity_; }
  const RowLayout& layout() const { return layout_; }
  std::size_t bytes() const; // of memory, all of it

  const std::byte* row(std::size_t i) const { return data_.get() + i * layout_.row_bytes; }
  std::byte* row(std::size_t i) { return data_.get() + i * layout_.row_bytes; }
  const float* action(std::size_t i) const;
  float reward(std::size_t i) const;
  float discount(std::size_t i) const;
  std::uint8_t flags(std::size_t i) const { return flags_[i]; }
  const std::uint8_t* flags() const { return flags_.get(); }
  std::uint8_t* flags() { return flags_.get(); }

private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  std::uint64_t id_;
  std::uint32_t capacity_;
  RowLayout layout_;
  std::unique_ptr<std::byte[], Free> data_;
  std::unique_ptr<std::uint8_t[]> flags_;
};

/// One n-step transition as a window of rows: the frames of the observation (`history` older ones
/// before the step it starts at) and `steps` further rows. The window begins in chunks[0] at row
/// `begin`; where it runs past that chunk's end it goes on at row 0 of chunks[1].
struct Item {
  std::uint64_t key = 0; // in a table: counts its insertions, from 0; before: its writer's
  std::array<std::shared_ptr<const Chunk>, 2> chunks;
  std::uint32_t begin = 0;
  std::uint16_t history = 0;       // < stack; less than stack - 1 only where the episode is younger
  std::uint16_t steps = 0;         // 1 to n_step
  std::uint32_t times_sampled = 0; // the sample that gave it counts
  std::uint32_t table_items = 0;   // how many the table held when it was sampled
  double priority = 1;             // 0 to kMaxPriority of selector.hpp
  double probability = 0;          // of this choice when it was sampled

  std::uint32_t rows() const { return std::uint32_t{history} + steps + 1; }
  const std::byte* row(std::uint32_t k) const { // k < rows()
    const std::uint32_t capacity = chunks[0]->capacity();
    return begin + k < capacity ? chunks[0]->row(begin + k) : chunks[1]->row(begin + k - capacity);
  }
};

/// Rows [first, first + count) of a chunk, newly filled.
struct ChunkRows {
  std::shared_ptr<const Chunk> chunk;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// What one writer adds to one table in one go. In a process the pointer travels and the table
/// keeps the writer's chunks; between processes the new rows travel. Its items refer to its own
/// rows and to rows of the same writer's earlier insertions.
struct Insertion {
  std::uint64_t writer_id = 0;
  std::uint64_t sequence = 0; // per writer, from 1; a table takes each once
  std::vector<ChunkRows> rows;
  std::vector<Item> items;
};
using InsertionPtr = std::shared_ptr<const Insertion>;

} // namespace troupe::replay
