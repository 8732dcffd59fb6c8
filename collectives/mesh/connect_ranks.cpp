#include "collectives/mesh/connect_ranks.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <poll.h>

#include "collectives/mesh/fingerprint.hpp"
#include "collectives/mesh/group_key.hpp"

namespace troupe::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using Handshake = SecureSocket::Handshake;

constexpr std::size_t kMostCallers = 256; // not yet authenticated; beyond it the oldest is closed
constexpr std::chrono::seconds kIntroduction{5};      // for a caller's handshake and greeting
constexpr std::chrono::milliseconds kRecall{20};      // pause before a rank tries to connect again
constexpr std::chrono::milliseconds kStoreLook{1000}; // interval between checks of the store

std::string address_key(int rank) { // key in the store
  return "troupe/control/" + std::to_string(rank);
}

/// The first bytes that a connecting rank sends. `to` reveals a connection that was diverted to
/// another rank.
struct Greeting {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t size = 0;
  std::int32_t in_the_clear = 0; // 1: the data that follow are not encrypted
};

/// A connection whose greeting is not complete. All such connections are served at once, so a
/// silent one does not delay the others.
struct Caller {
  SecureSocket socket;
  Clock::time_point until;
  Greeting greeting{};
  std::size_t got = 0; // bytes of the greeting received
  bool has_key = false;
  bool gone = false;

  bool is_whole() const { return got == sizeof greeting; }

  /// Handles what has arrived; returns true if the greeting is complete or can no longer be valid.
  bool has_finished() {
    if (!has_key) {
      const auto state = socket.handshake();
      has_key = state == Handshake::done;
      gone = !has_key && state != Handshake::waiting;
    }
    while (has_key && !gone && !is_whole()) {
      const auto more =
          socket.receive(std::as_writable_bytes(std::span(&greeting, 1)).subspan(got));
      gone = !more;
      if (more.value_or(0) == 0)
        break;
      got += *more;
    }
    return is_whole() || gone;
  }
};

bool is_in_the_clear(const ConnectOptions& options) {
  return options.clear_if_trusted
         && (options.trust.trusted_network || resolves_to_loopback(options.host));
}

class Meeting {
public:
  Meeting(c10d::Store& store, int rank, int size, const ConnectOptions& options)
      : store_(store),
        own_{.from = rank, .size = size, .in_the_clear = is_in_the_clear(options) ? 1 : 0},
        options_(options),
        listener_(listen_at(options.host, 0)),
        key_(share_group_key(store, rank, options.trust)),
        ranks_(static_cast<std::size_t>(size)) {
    const auto address = options.host + " " + std::to_string(port_of(listener_));
    store.set(address_key(rank), std::vector<std::uint8_t>(address.begin(), address.end()));
  }

  std::vector<SecureSocket> connect() {
    for (int peer = 0; peer < own_.from; ++peer)
      ranks_[static_cast<std::size_t>(peer)] = call(peer);
    wait_for_callers();
    return std::move(ranks_);
  }

private:
  SecureSocket call(int peer) const {
    std::vector<std::uint8_t> raw;
    try {
      raw = store_.get(address_key(peer));
    } catch (const std::exception& error) {
      throw std::runtime_error(rank_name(peer) + " did not join the rendezvous: " + error.what());
    }
    const std::string text(raw.begin(), raw.end());
    const auto space = text.find(' ');
    const auto port = space == std::string::npos ? 0 : std::atoi(text.c_str() + space);
    Greeting greeting = own_;
    greeting.to = peer;
    for (;;) {
      SecureSocket socket(connect_to(text.substr(0, space), port, options_.deadline),
                          SecureSocket::Role::client, key_, options_.read_bytes);
      switch (finish_handshake(socket, options_.deadline)) {
      case Handshake::done:
        if (send_all(socket, std::as_bytes(std::span(&greeting, 1)), options_.deadline)) {
          if (own_.in_the_clear != 0)
            socket.continue_in_the_clear();
          return socket;
        }
        break;
      case Handshake::refused:
        throw std::runtime_error(rank_name(peer) + " at " + text + " has another key than rank "
                                 + std::to_string(own_.from)
                                 + "; do all ranks have the same TROUPE_KEYS, and the rendezvous "
                                   "of one group?");
      default: // the peer had too many callers, or this rank was too slow
        break;
      }
      if (Clock::now() + kRecall >= options_.deadline)
        throw std::runtime_error(rank_name(peer) + " closed the connection during the rendezvous");
      poll(nullptr, 0, static_cast<int>(kRecall.count()));
    }
  }

  bool is_complete() const {
    return std::all_of(ranks_.begin() + own_.from + 1, ranks_.end(),
                       [](const SecureSocket& socket) { return static_cast<bool>(socket); });
  }

  [[noreturn]] void report_missing() const {
    std::string missing;
    for (std::size_t peer = static_cast<std::size_t>(own_.from) + 1; peer < ranks_.size(); ++peer)
      if (!ranks_[peer])
        missing += (missing.empty() ? "" : ", ") + rank_name(static_cast<int>(peer));
    throw std::runtime_error("rendezvous: " + missing + " did not join; was it started, and for "
                             + std::to_string(ranks_.size()) + " ranks?"
                             + (refused_ > 0 ? " Connections turned away without the group's key: "
                                                   + std::to_string(refused_)
                                                   + "; do all ranks have the same "
                                                     "TROUPE_KEYS?"
                                             : ""));
  }

  void admit(Caller caller) {
    const Greeting& greeting = caller.greeting;
    if (greeting.to != own_.from)
      return; // a stranger has diverted the connection here
    if (greeting.size != own_.size || greeting.from <= own_.from || greeting.from >= own_.size)
      throw std::runtime_error(
          "rendezvous: a process connected as rank " + std::to_string(greeting.from) + " of "
          + std::to_string(greeting.size) + " to rank " + std::to_string(own_.from) + " of "
          + std::to_string(own_.size) + "; start all with the same size and different ranks");
    if (greeting.in_the_clear != own_.in_the_clear)
      throw std::runtime_error(
          "rendezvous: " + rank_name(greeting.from)
          + (greeting.in_the_clear != 0 ? " does not encrypt, " : " encrypts, ")
          + rank_name(own_.from) + (own_.in_the_clear != 0 ? " does not" : " does")
          + "; set TROUPE_TRUSTED_NETWORK in all processes or in none");
    if (own_.in_the_clear != 0)
      caller.socket.continue_in_the_clear();
    ranks_[static_cast<std::size_t>(greeting.from)] = std::move(caller.socket);
  }

  void accept_one() {
    Socket socket = accept_from(listener_, Clock::now());
    if (!socket)
      return;
    if (callers_.size() == kMostCallers)
      callers_.erase(callers_.begin());
    callers_.push_back(
        {SecureSocket(std::move(socket), SecureSocket::Role::server, key_, options_.read_bytes),
         Clock::now() + kIntroduction});
  }

  /// Accepts connections until every higher rank has connected.
  void wait_for_callers() {
    while (!is_complete()) {
      const auto now = Clock::now();
      if (now >= options_.deadline)
        report_missing();
      std::erase_if(callers_, [&](const Caller& caller) { return now >= caller.until; });
      std::vector<pollfd> items{{listener_.fd(), POLLIN, 0}};
      auto wake = std::min(options_.deadline, now + kStoreLook);
      for (const Caller& caller : callers_) {
        items.push_back({caller.socket.fd(), POLLIN, 0});
        wake = std::min(wake, caller.until);
      }
      if (poll(items.data(), items.size(), milliseconds_until(wake)) == 0)
        store_.check({address_key(own_.from)}); // throws if the group was abandoned
      for (std::size_t i = callers_.size(); i-- > 0;) {
        if (items[i + 1].revents == 0 || !callers_[i].has_finished())
          continue;
        refused_ += callers_[i].has_key ? 0 : 1;
        if (callers_[i].is_whole())
          admit(std::move(callers_[i]));
        callers_.erase(callers_.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (items[0].revents != 0)
        accept_one();
    }
  }

  c10d::Store& store_;
  Greeting own_;
  const ConnectOptions& options_;
  Socket listener_;
  GroupKey key_;
  std::vector<SecureSocket> ranks_;
  std::vector<Caller> callers_;
  int refused_ = 0;
};

} // namespace

std::vector<SecureSocket> connect_ranks(c10d::Store& store, int rank, int size,
                                        const ConnectOptions& options) {
  require_trust(options.trust, options.host);
  return Meeting(store, rank, size, options).connect();
}

} // namespace troupe::collectives
