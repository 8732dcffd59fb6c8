#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace troupe::python {

/// Blocks of memory of one size. A block is reused after its last user has released it. Any thread;
/// blocks may outlive this object.
class RecycledBlocks {
public:
  explicit RecycledBlocks(std::size_t bytes) : store_(std::make_shared<Store>(bytes)) {}

  /// Returns a block aligned to kAlignment, with unspecified contents.
  std::shared_ptr<std::byte> take() {
    std::byte* block = store_->pop();
    return {block, [store = store_](std::byte* used) { store->give(used); }};
  }

  static constexpr std::size_t kAlignment = 64;

private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20; // bytes
  static constexpr std::size_t kMostKept = 4;                    // unused blocks; more are freed

  class Store {
  public:
    explicit Store(std::size_t bytes) : bytes_(bytes) { unused_.reserve(kMostKept); }
    ~Store() {
      for (std::byte* block : unused_)
        release(block);
    }
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    std::byte* pop() {
      {
        const std::lock_guard lock(mutex_);
        if (!unused_.empty()) {
          std::byte* block = unused_.back();
          unused_.pop_back();
          return block;
        }
      }
      void* block = ::operator new(bytes_, alignment());
      if (bytes_ >= kHugePage) // fewer page table entries; optional, so errors are ignored
        static_cast<void>(madvise(block, bytes_, MADV_HUGEPAGE));
      return static_cast<std::byte*>(block);
    }

    void give(std::byte* block) {
      {
        const std::lock_guard lock(mutex_);
        if (unused_.size() < kMostKept) {
          unused_.push_back(block);
          return;
        }
      }
      release(block);
    }

  private:
    std::align_val_t alignment() const {
      return std::align_val_t(bytes_ >= kHugePage ? kHugePage : kAlignment);
    }
    void release(std::byte* block) const { ::operator delete(block, alignment()); }

    std::size_t bytes_;
    std::mutex mutex_;
    std::vector<std::byte*> unused_;
  };

  std::shared_ptr<Store> store_;
};

} // namespace troupe::python
