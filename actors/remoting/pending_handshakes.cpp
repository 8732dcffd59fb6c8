#include "actors/remoting/pending_handshakes.hpp"

#include <algorithm>
#include <utility>

#include <sys/socket.h>

#include "actors/remoting/refusals.hpp"

namespace troupe::actors {

namespace {
constexpr std::chrono::seconds kLongestNap{60};
} // namespace

PendingHandshakes::PendingHandshakes(std::chrono::milliseconds deadline, std::size_t most,
                                     std::shared_ptr<Refusals> refusals)
    : deadline_(deadline), most_(most), refusals_(std::move(refusals)) {}

PendingHandshakes::~PendingHandshakes() {
  thread_.request_stop();
}

void PendingHandshakes::add(int socket, std::string address) {
  const std::lock_guard lock(mutex_);
  pending_.push_back({.socket = socket,
                      .address = std::move(address),
                      .deadline = std::chrono::steady_clock::now() + deadline_});
  if (pending_.size() > most_)
    shut_down_oldest("too many connections without a handshake");
  if (!thread_.joinable()) // a process that only connects needs no thread
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  changed_.notify_one();
}

void PendingHandshakes::remove(int socket) {
  const std::lock_guard lock(mutex_);
  pending_.remove_if([&](const Pending& one) { return one.socket == socket; });
}

std::size_t PendingHandshakes::count() const {
  const std::lock_guard lock(mutex_);
  return pending_.size();
}

void PendingHandshakes::shut_down_oldest(const std::string& why) {
  ::shutdown(pending_.front().socket, SHUT_RDWR); // CAF reads the end and closes the connection
  refusals_->add("a peer at " + pending_.front().address + ": " + why);
  pending_.pop_front();
}

void PendingHandshakes::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    // All have the same time limit, so the oldest expires first.
    while (!pending_.empty() && pending_.front().deadline <= std::chrono::steady_clock::now())
      shut_down_oldest("no handshake within " + std::to_string(deadline_.count()) + " ms");
    const auto first =
        pending_.empty() ? std::chrono::steady_clock::time_point::max() : pending_.front().deadline;
    const auto nap_end = std::min(first, std::chrono::steady_clock::now() + kLongestNap);
    changed_.wait_until(lock, stop, nap_end,
                        [&] { return !pending_.empty() && pending_.front().deadline < first; });
  }
}

} // namespace troupe::actors
