#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <unistd.h>

namespace troupe::experiments::launchers {

inline void close_if_open(int& descriptor) {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
}

/// Splits the output of a process into lines. Lines longer than 64 KiB are split.
class OutputLines {
public:
  /// Reads the available output from a non-blocking pipe, at most 1 MiB, and calls `show` with each
  /// line: a process that writes as fast as it is read does not keep the caller. Closes the
  /// descriptor at the end of the output.
  template <class Show>
  void read(int& descriptor, const Show& show) {
    char bytes[1 << 14];
    for (int blocks = 0; descriptor >= 0 && blocks < kMostBlocks; ++blocks) {
      const ssize_t count = ::read(descriptor, bytes, sizeof bytes);
      if (count == 0)
        close_if_open(descriptor);
      if (count <= 0)
        break;
      std::string_view rest(bytes, static_cast<std::size_t>(count));
      for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;
           rest.remove_prefix(end + 1)) {
        partial_ += rest.substr(0, end);
        finish(show, true);
      }
      partial_ += rest;
      if (partial_.size() > kLongest)
        finish(show, true);
    }
  }
  /// Call it when the process has ended: shows a last line without a newline.
  template <class Show>
  void finish(const Show& show) {
    finish(show, !partial_.empty());
  }

private:
  static constexpr std::size_t kLongest = 1 << 16;
  static constexpr int kMostBlocks = 64; // more than a pipe holds

  template <class Show>
  void finish(const Show& show, bool any) {
    if (any)
      show(std::string_view(partial_));
    partial_.clear();
  }

  std::string partial_;
};

} // namespace troupe::experiments::launchers
