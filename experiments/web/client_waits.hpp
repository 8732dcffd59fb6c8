#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility> // Asio's headers need it but do not include it

#include <boost/asio/post.hpp>
#include <boost/beast/core/tcp_stream.hpp>

namespace troupe::experiments::web {

/// The connections that wait for their clients. Thread-safe.
class ClientWaits {
public:
  using Clock = std::chrono::steady_clock;
  using Stream = boost::beast::tcp_stream;

  /// Ends the connection that has waited longest. Returns false if none waits.
  bool end_oldest() {
    return end_first([](const One&) { return true; });
  }
  /// Ends the connections that have waited longer than their clients may take.
  void end_late() {
    const auto now = Clock::now();
    while (end_first([&](const One& one) { return one.deadline <= now; })) {
    }
  }

private:
  friend class Waiting;
  struct One {
    Stream::executor_type executor;
    std::weak_ptr<Stream> stream; // locked on its executor only
    Clock::time_point deadline;
  };

  template <typename MayEnd>
  bool end_first(const MayEnd& may_end) {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty() || !may_end(waiting_.begin()->second)) {
      return false;
    }
    const One first = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    boost::asio::post(first.executor, [stream = first.stream] {
      if (const auto waits = stream.lock()) {
        waits->close(); // cancel() would miss an operation that begins only now
      }
    });
    return true;
  }

  std::mutex mutex_;
  std::map<std::uint64_t, One> waiting_; // the longest first
  std::uint64_t last_ = 0;
};

/// Exists while a connection waits for its client, on the connection's strand.
class Waiting {
public:
  Waiting(ClientWaits& waits, ClientWaits::Stream& stream, std::chrono::seconds most)
      : waits_(waits), stream_(&stream, [](ClientWaits::Stream*) {}) {
    const std::lock_guard lock(waits_.mutex_);
    id_ = ++waits_.last_;
    waits_.waiting_.emplace(
        id_, ClientWaits::One{stream.get_executor(), stream_, ClientWaits::Clock::now() + most});
  }
  ~Waiting() {
    const std::lock_guard lock(waits_.mutex_);
    waits_.waiting_.erase(id_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

private:
  ClientWaits& waits_;
  std::shared_ptr<ClientWaits::Stream> stream_; // does not own it
  std::uint64_t id_ = 0;
};

} // namespace troupe::experiments::web
