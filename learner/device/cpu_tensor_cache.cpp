#include "learner/device/cpu_tensor_cache.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include <sys/mman.h>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

namespace troupe::learner {
namespace {

constexpr std::size_t kLeast = 1 << 20;     // malloc serves smaller blocks
constexpr std::size_t kGranule = 256 << 10; // block sizes are multiples of this
constexpr std::size_t kHugePage = 2 << 20;

/// Maps pages from the system, aligned to a huge page.
void* mapped(std::size_t bytes) {
  const auto whole = bytes + kHugePage;
  void* memory = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(memory);
  const auto past = reinterpret_cast<std::uintptr_t>(begin) % kHugePage;
  auto* block = begin + (past == 0 ? 0 : kHugePage - past);
  if (block != begin)
    ::munmap(begin, static_cast<std::size_t>(block - begin));
  ::munmap(block + bytes, static_cast<std::size_t>(begin + whole - (block + bytes)));
  ::madvise(block, bytes, MADV_HUGEPAGE); // if none are available, small pages serve as well
  return block;
}

class KeepingAllocator : public c10::Allocator {
public:
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  CpuCacheStatistics report() {
    const std::lock_guard lock(mutex_);
    return memory_;
  }

private:
  static void release(void* memory);
  void* take(std::size_t bytes);
  void give_back(void* memory);

  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> kept_; // by block size
  std::unordered_map<void*, std::size_t> in_use_;
  CpuCacheStatistics memory_;
};

/// Never destroyed, because tensors may be freed after everything else.
KeepingAllocator& allocator() {
  static auto* const only = new KeepingAllocator;
  return *only;
}

c10::DataPtr KeepingAllocator::allocate(std::size_t bytes) {
  void* memory = bytes < kLeast ? c10::alloc_cpu(bytes) : take(bytes);
  return {memory, memory, release, c10::Device(c10::DeviceType::CPU)};
}

void* KeepingAllocator::take(std::size_t bytes) {
  const auto size = (bytes + kGranule - 1) / kGranule * kGranule;
  const std::lock_guard lock(mutex_);
  void* block = nullptr;
  if (const auto found = kept_.find(size); found != kept_.end()) {
    block = found->second.back();
    found->second.pop_back();
    if (found->second.empty())
      kept_.erase(found);
    memory_.kept -= size;
  } else {
    while (memory_.kept > 0 && memory_.in_use + memory_.kept + size > memory_.most) {
      const auto largest = std::prev(kept_.end());
      ::munmap(largest->second.back(), largest->first);
      memory_.kept -= largest->first;
      largest->second.pop_back();
      if (largest->second.empty())
        kept_.erase(largest);
    }
    block = mapped(size);
  }
  in_use_[block] = size;
  memory_.in_use += size;
  memory_.most = std::max(memory_.most, memory_.in_use);
  return block;
}

void KeepingAllocator::give_back(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = in_use_.find(memory);
  if (found == in_use_.end())
    return c10::free_cpu(memory);
  memory_.in_use -= found->second;
  memory_.kept += found->second;
  kept_[found->second].push_back(memory);
  in_use_.erase(found);
}

void KeepingAllocator::release(void* memory) {
  // Only blocks of this cache have this alignment, except for a rare block of malloc's.
  if (reinterpret_cast<std::uintptr_t>(memory) % kHugePage != 0 || memory == nullptr)
    c10::free_cpu(memory);
  else
    allocator().give_back(memory);
}

} // namespace

void keep_tensor_memory() {
  if (c10::GetCPUAllocator() != &allocator())
    c10::SetCPUAllocator(&allocator());
}

CpuCacheStatistics cpu_cache_statistics() {
  return allocator().report();
}

} // namespace troupe::learner
