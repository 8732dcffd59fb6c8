#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "env/wire/control.hpp"
#include "env/wire/ledger.hpp"
#include "env/wire/shared_heap.hpp"

namespace troupe::env::wire {

/// A sender's heap as its receiver maps it: frames to read, a ledger to write. Frames in use keep
/// it alive, also after the sender's death.
class SharedMapping : public std::enable_shared_from_this<SharedMapping> {
public:
  /// Null, with the reason in `why`, unless both are sealed memory files of the announced size, at
  /// most `max_bytes`: a sealed file cannot shrink under its reader.
  static std::shared_ptr<SharedMapping> open(const Descriptor& frames, const Descriptor& ledger,
                                             std::uint64_t bytes, std::size_t max_bytes,
                                             std::string& why);

  /// The frame, held until the block ends; null if it is outside the memory.
  std::shared_ptr<SharedBlock> hold(const Reference& reference);

  /// After hold() of all of the message's references.
  void seen(std::uint64_t sequence);

private:
  class View;
  SharedMapping() = default;

  Mapped frames_;
  Mapped ledger_map_;
  Ledger* ledger_ = nullptr;
};

} // namespace troupe::env::wire
