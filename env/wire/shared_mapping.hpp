#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "env/wire/control.hpp"
#include "env/wire/ledger.hpp"
#include "env/wire/shared_heap.hpp"

namespace troupe::env::wire {

/// A sender's heap as mapped by its receiver, which reads the frames and writes the ledger. Frames
/// in use keep the mapping alive, even after the sender has died.
class SharedMapping : public std::enable_shared_from_this<SharedMapping> {
public:
  /// Returns null unless both are sealed memory files of the announced size, which is at most
  /// `max_bytes`. A sealed file cannot shrink under its reader.
  static std::shared_ptr<SharedMapping> open(const Descriptor& frames, const Descriptor& ledger,
                                             std::uint64_t bytes, std::size_t max_bytes);

  /// Returns the frame, which is held until the block is destroyed; null if the reference points
  /// outside the memory. A forked process must not read the frame, and destroying its copy of the
  /// block releases nothing.
  std::shared_ptr<SharedBlock> hold(const Reference& reference);

  /// Records that a message has arrived. Call it after hold() of all references of the message.
  void seen(std::uint64_t sequence);

private:
  class View;
  SharedMapping() = default;

  Mapped frames_;
  Mapped ledger_map_;
  Ledger* ledger_ = nullptr;
};

} // namespace troupe::env::wire
