#pragma once

#include <cstddef>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace troupe::env::wire {

/// Owns a file descriptor.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0)
      ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; } // -1: none
  int release() { return std::exchange(number_, -1); }
  explicit operator bool() const { return number_ >= 0; }

private:
  int number_ = -1;
};

/// Owns a mapping of shared memory. Forked children do not inherit the memory, and destroying their
/// copy of this object does nothing.
class Mapped {
public:
  Mapped() = default;
  /// Empty if the system refuses the mapping.
  Mapped(int descriptor, std::size_t size, int protection) {
    void* at = ::mmap(nullptr, size, protection, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED)
      return;
    ::madvise(at, size, MADV_DONTFORK);
    at_ = at;
    size_ = size;
    process_ = ::getpid();
  }
  ~Mapped() {
    if (at_ != nullptr && is_in_this_process())
      ::munmap(at_, size_);
  }
  Mapped(Mapped&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), size_(other.size_), process_(other.process_) {}
  Mapped& operator=(Mapped&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(size_, other.size_);
    std::swap(process_, other.process_);
    return *this;
  }

  std::byte* bytes() const { return static_cast<std::byte*>(at_); }
  std::size_t size() const { return size_; }
  explicit operator bool() const { return at_ != nullptr; }
  /// False in a process that was forked after the memory was mapped: it must not touch the memory.
  bool is_in_this_process() const { return process_ == ::getpid(); }

private:
  void* at_ = nullptr;
  std::size_t size_ = 0;
  ::pid_t process_ = 0;
};

} // namespace troupe::env::wire
