#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "env/wire/control.hpp"
#include "env/wire/ledger.hpp"

namespace troupe::env::wire {

class SharedHeap;

/// The bytes of a frame in shared memory. The last owner releases them, on any thread.
class SharedBlock {
public:
  explicit SharedBlock(std::span<std::byte> where) : bytes_(where) {}
  virtual ~SharedBlock() = default;
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  std::span<std::byte> bytes() const { return bytes_; } // read-only in a received block
  /// The heap in which the block was allocated for sending; null for a received block.
  virtual const SharedHeap* heap() const { return nullptr; }

private:
  std::span<std::byte> bytes_;
};

/// The memory of one sender for one receiver. The sender allocates frames in it, writes them, and
/// sends references to the receiver, whose ledger records which ones it has released. The heap
/// consists of two sealed anonymous files: the frames, which only this process may write, and the
/// ledger. The kernel frees both when their last owner is gone. One thread uses the heap; blocks
/// may be destroyed on any thread.
class SharedHeap : public std::enable_shared_from_this<SharedHeap> {
public:
  /// Reserves `bytes` of address space and commits memory as needed. Returns null if the system
  /// refuses.
  static std::shared_ptr<SharedHeap> make(std::size_t bytes);

  /// Returns null if there is no room, if there are too many frames, or if memory runs out.
  std::shared_ptr<SharedBlock> allocate(std::size_t size);

  /// Hands a block of this heap over to the receiver, in the message with number `sequence`.
  Reference send(const SharedBlock& block, std::uint64_t sequence);

  std::size_t size() const { return frames_.size(); }
  std::size_t in_use(); // bytes, after taking back what the receiver has released
  void close_files();   // call it once the receiver has them
  const Descriptor& frames() const { return frames_file_; }
  const Descriptor& ledger() const { return ledger_file_; }

private:
  class Lease;
  struct Range {
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  enum class State : std::uint8_t { leased, sent, returned };
  struct Slot {
    Range range = {};
    std::uint32_t generation = 0;
    std::uint64_t sequence = 0;
    std::atomic<State> state = State::returned;
  };

  SharedHeap() = default;
  std::optional<std::size_t> place(std::size_t size);
  bool commit(std::size_t end);
  bool has_slot();
  bool is_done(std::uint16_t slot, std::uint64_t seen) const;
  void take_back_oldest();
  void take_back_all();
  void give(const Range& range);

  Descriptor frames_file_;
  Descriptor ledger_file_;
  Mapped frames_;
  Mapped ledger_map_;
  const Ledger* ledger_ = nullptr;
  std::size_t committed_ = 0; // bytes
  std::size_t used_ = 0;
  std::vector<Range> room_; // sorted by offset, never adjacent
  std::deque<Slot> slots_;  // grows; elements never move
  std::vector<std::uint16_t> free_slots_;
  std::deque<std::uint16_t> outstanding_; // in the order of allocation
};

} // namespace troupe::env::wire
