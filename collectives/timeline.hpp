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

#include <c10/core/Device.h>

namespace troupe::collectives {

class Communicator;

/// Records the time spans of one rank for a Chrome trace (chrome://tracing, Perfetto). Any thread
/// may call it. While recording, a span costs two clock readings and a lock that is held only as
/// the span ends; otherwise it costs one load of a flag. The memory is bounded: a full timeline
/// drops its oldest span and counts it.
class Timeline {
public:
  using Clock = std::chrono::steady_clock;

  struct Event {
    const char* name = ""; // a literal, e.g. "forward" or "reduce"
    int index = -1;        // appended to the name, as in "reduce 3"; -1: none
    int lane = 0;          // the thread's number, from 0, in the order of first spans
    Clock::time_point begin;
    Clock::time_point end;
  };

  /// Records its own lifetime as an event. Does nothing if the timeline is null.
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
  /// A timeline records from its construction until stop(). start() makes it record again, with no
  /// earlier spans and with room for `capacity` of them.
  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  void start(std::size_t capacity);
  void stop() { recording_.store(false, std::memory_order_relaxed); }
  void clear();
  /// Adds an event to the lane of the calling thread, even if the span began on another thread.
  /// `name` must be a literal or outlive this object. Does nothing while recording is off.
  void add(const char* name, int index, Clock::time_point begin, Clock::time_point end);
  std::vector<Event> events() const; // oldest first
  std::uint64_t dropped() const;     // number of spans dropped so far

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

/// The offset of a rank's clock from rank 0's.
struct ClockOffset {
  std::chrono::nanoseconds ahead{0}; // how far it is ahead of rank 0's clock
  std::chrono::nanoseconds error{0}; // bound on the error of `ahead`
};

/// Returns the offsets of all ranks' steady clocks, [rank], on every rank. All ranks must call it.
/// It measures several barriers: no rank leaves a barrier before the last one has arrived, which
/// bounds the offset from both sides. `device` is where the communicator's tensors must be.
std::vector<ClockOffset> measure_clock_offsets(Communicator& communicator,
                                               c10::Device device = c10::kCPU);

/// Gathers the timelines of all ranks and writes one Chrome trace on rank 0, in rank 0's clock.
/// Each rank passes one or more timelines; each timeline's rank becomes a process of the trace. All
/// ranks must call it; a null communicator means a single rank. `device` is where the
/// communicator's tensors must be. Throws std::runtime_error naming the path.
void write_timeline(const std::vector<const Timeline*>& timelines, Communicator* communicator,
                    const std::filesystem::path& path, c10::Device device = c10::kCPU);

} // namespace troupe::collectives
