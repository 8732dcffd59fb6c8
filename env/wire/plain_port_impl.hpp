#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "env/sockets/bell.hpp"
#include "env/sockets/listen.hpp"
#include "env/wire/plain_port.hpp"
#include "env/wire/port_peer.hpp"

namespace troupe::env::wire {

constexpr std::uint64_t kWake = 0; // identifiers for epoll: this, then listeners, then peers
constexpr std::uint64_t kFirstPeer = 1024;
constexpr std::size_t kBufferBytes = 256 << 10;
constexpr std::size_t kMostMessages = 1024;            // questions and unread answers of a peer
constexpr std::size_t kMostUnread = 2 * kMostMessages; // further answers are dropped

/// Approximate memory of a message, in bytes.
inline std::size_t cost_of(const ZmtpMessage& message) {
  constexpr std::size_t kPartCost = 64;
  std::size_t bytes = kPartCost;
  for (const Frame& part : message.parts)
    bytes += kPartCost + part.size();
  return bytes;
}

struct PlainPort::Impl {
  using Clock = std::chrono::steady_clock;
  using Peer = std::shared_ptr<PortPeer>;
  using Lock = std::unique_lock<std::mutex>;

  explicit Impl(const PortOptions& o);
  ~Impl();

  // Called by any thread that holds the mutex; defined in plain_port.cpp.
  Peer find(std::uint64_t number) const;
  void queue(const Peer& peer, std::shared_ptr<const PortMessage> message);
  void keep_to_unread_bytes(const Peer& newest);
  void flush(Lock& lock, const Peer& peer, std::size_t most);
  void wrote(PortPeer& peer, std::size_t bytes);
  void forget_unread(PortPeer& peer);
  void disconnect(PortPeer& peer);
  void watch(PortPeer& peer, std::uint32_t events);
  bool may_read(const PortPeer& peer, std::size_t part) const;
  void read_again(const Peer& taken, std::size_t waiting_before);

  // Called by the port's thread; defined in plain_port_thread.cpp.
  void run(const std::stop_token& stop);
  void accept_from(Listener& listener);
  bool make_room();
  void pause_accepting();
  void watch_listeners(bool on);
  void handle(std::uint64_t number, std::uint32_t events);
  void read(const Peer& peer);
  bool parse(const Peer& peer, std::size_t bytes);
  bool take(const Peer& peer, ZmtpReader::Event event);
  void take_command(const Peer& peer);
  bool deliver(const Peer& peer, ZmtpMessage message);
  void keep_to_unfinished_bytes();
  void leave(const Peer& peer);
  void look_at_clock();

  const PortOptions options;
  Descriptor epoll;
  Bell wake;  // wakes the thread
  Bell ready; // signals the owner
  std::atomic<std::int64_t> disconnected = 0;

  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::unordered_map<std::uint64_t, Peer> peers; // changed only by the thread
  std::deque<Peer> turns;                        // peers with messages for the owner
  std::vector<Peer> paused;                      // peers that are not being read
  std::size_t waiting_bytes = 0;
  std::size_t unread_bytes = 0;

  // Used only by the thread:
  std::uint64_t next_number;
  std::vector<std::byte> buffer;
  std::size_t unfinished_bytes = 0;
  bool has_unready = false; // some peer has not completed its handshake
  bool accepts = true;
  Clock::time_point looked = Clock::now();

  std::jthread thread; // last: it uses all of the above
};

} // namespace troupe::env::wire
