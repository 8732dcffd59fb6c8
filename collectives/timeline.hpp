#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::collectives {

class Communicator;

/// Records spans of one rank for a Chrome trace (chrome://tracing, Perfetto). Any thread; a span
/// costs two readings of the clock and a lock held only while spans end, or one load of a flag
/// while nothing is recorded. Bounded: when full it drops the oldest span and counts it.
class Timeline {
public:
  using Clock = std::chrono::steady_clock;

  struct Event {
    const char* name = ""; // a literal: "forward", "reduce"
    int index = -1;        // "reduce 3"; -1: none
    int lane = 0;          // of the thread, from 0 in the order of their first spans
    Clock::time_point begin;
    Clock::time_point end;
  };

  /// Records its lifetime; nothing with a null timeline.
  class Span {
  public:
    Span(Timeline* timeline, const char* name, int index = -1)
        : timeline_(timeline && timeline->recording() ? timeline : nullptr),
          name_(name),
          index_(index) {
      if (timeline_)
        begin_ = Clock::now();
    }
    Span(Span&& other) noexcept
        : timeline_(std::exchange(other.timeline_, nullptr)),
          name_(other.name_),
          index_(other.index_),
          begin_(other.begin_) {}
    Span& operator=(Span&&) = delete;
    ~Span() { end(); }

    void end() {
      if (timeline_)
        std::exchange(timeline_, nullptr)->add(name_, index_, begin_, Clock::now());
    }

  private:
    Timeline* timeline_;
    const char* name_;
    int index_;
    Clock::time_point begin_;
  };

  /// Throws std::invalid_argument for a capacity of 0.
  explicit Timeline(int rank, std::size_t capacity = std::size_t{1} << 16);

  int rank() const { return rank_; }
  /// It records from its construction until stop(), and again, without earlier spans and with room
  /// for `capacity`, from start().
  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  void start(std::size_t capacity);
  void stop() { recording_.store(false, std::memory_order_relaxed); }
  void clear();
  /// `name` is a literal, or outlives this. A span that began on another thread counts to the
  /// calling one. Does nothing while it does not record.
  void add(const char* name, int index, Clock::time_point begin, Clock::time_point end);
  std::vector<Event> events() const; // oldest first
  std::uint64_t dropped() const;     // spans that went

private:
  int lane_of_this_thread();

  const int rank_;
  std::size_t capacity_;
  std::atomic<bool> recording_{true};
  mutable std::mutex mutex_;
  std::vector<Event> events_; // a ring once it is full
  std::size_t next_ = 0;
  std::uint64_t dropped_ = 0;
  std::vector<std::thread::id> threads_; // [lane]
};

/// The offset of a rank's clock.
struct ClockOffset {
  std::chrono::nanoseconds ahead{0}; // of rank 0's clock
  std::chrono::nanoseconds error{0}; // the true one is within this of `ahead`
};

/// Offsets of all ranks' steady clocks, on every rank, [rank]. From `rounds` barriers: no rank
/// leaves one before the last has arrived, which bounds the offset from both sides. All ranks call
/// it.
std::vector<ClockOffset> measure_clock_offsets(Communicator& communicator, int rounds = 32);

/// Gathers the timelines of all ranks (each gives its own, or several) and writes one Chrome trace
/// on rank 0, a process per timeline's rank, times by rank 0's clock. All ranks call it; a null
/// communicator is one rank. Throws std::runtime_error naming the path.
void write_timeline(const std::vector<const Timeline*>& timelines, Communicator* communicator,
                    const std::filesystem::path& path);

} // namespace troupe::collectives
