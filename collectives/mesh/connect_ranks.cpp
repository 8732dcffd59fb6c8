#include "collectives/mesh/connect_ranks.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

namespace troupe::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using Token = std::array<std::uint64_t, 2>;

constexpr const char* kTokenKey = "troupe/token"; // in the store
constexpr std::size_t kMostCallers = 256;         // not known yet; above it the oldest is closed
constexpr std::chrono::milliseconds kStoreLook{1000}; // between two attempts to reach the store

std::string address_key(int rank) { // in the store
  return "troupe/control/" + std::to_string(rank);
}

/// The first bytes from the rank that connects.
struct Greeting {
  Token token{};
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

/// A connection that has not greeted yet. All are read at once, so that a silent one delays no
/// other.
struct Caller {
  Socket socket;
  Greeting greeting{};
  std::size_t got = 0; // bytes of it
  bool gone = false;

  explicit Caller(Socket from) : socket(std::move(from)) {}
  bool is_whole() const { return got == sizeof greeting; }

  /// Reads what has arrived; returns true if the greeting is complete or can no longer be valid.
  bool has_finished() {
    auto* bytes = reinterpret_cast<std::byte*>(&greeting);
    const auto more = recv(socket.fd(), bytes + got, sizeof greeting - got, 0);
    if (more > 0)
      got += static_cast<std::size_t>(more);
    else
      gone = more == 0 || (errno != EAGAIN && errno != EINTR);
    return is_whole() || gone;
  }
};

Token share_token(c10d::Store& store, int rank) {
  Token token{};
  if (rank == 0) {
    // A secret, not a seed: it never reaches a number of the run.
    if (getrandom(token.data(), sizeof token, 0) != static_cast<ssize_t>(sizeof token))
      throw std::runtime_error("the system gives no random bytes for the group's token");
    const auto* raw = reinterpret_cast<const std::uint8_t*>(token.data());
    store.set(kTokenKey, std::vector<std::uint8_t>(raw, raw + sizeof token));
    return token;
  }
  const auto raw = store.get(kTokenKey);
  if (raw.size() != sizeof token)
    throw std::runtime_error("the rendezvous holds a token of a foreign program; is the port the "
                             "one of this group's rank 0?");
  std::memcpy(token.data(), raw.data(), sizeof token);
  return token;
}

Socket connect_to_rank(c10d::Store& store, int peer, const Greeting& greeting, Deadline deadline) {
  std::vector<std::uint8_t> raw;
  try {
    raw = store.get(address_key(peer));
  } catch (const std::exception& error) {
    throw std::runtime_error(rank_name(peer) + " did not come to the rendezvous: " + error.what());
  }
  const std::string text(raw.begin(), raw.end());
  const auto space = text.find(' ');
  const auto port = space == std::string::npos ? 0 : std::atoi(text.c_str() + space);
  Socket socket = connect_to(text.substr(0, space), port, deadline);
  if (!send_all(socket, std::as_bytes(std::span(&greeting, 1)), deadline))
    throw std::runtime_error(rank_name(peer) + " closed the connection during the rendezvous");
  return socket;
}

[[noreturn]] void report_missing_ranks(const std::vector<Socket>& ranks, int rank) {
  std::string missing;
  for (std::size_t peer = static_cast<std::size_t>(rank) + 1; peer < ranks.size(); ++peer)
    if (!ranks[peer])
      missing += (missing.empty() ? "" : ", ") + rank_name(static_cast<int>(peer));
  throw std::runtime_error("rendezvous: " + missing + " did not come; was it started, and for "
                           + std::to_string(ranks.size()) + " ranks?");
}

void admit(std::vector<Socket>& ranks, const Greeting& own, Caller caller) {
  const Greeting& greeting = caller.greeting;
  if (greeting.token != own.token)
    return; // a stranger
  if (greeting.size != own.size || greeting.rank <= own.rank || greeting.rank >= own.size)
    throw std::runtime_error("rendezvous: a process came as rank " + std::to_string(greeting.rank)
                             + " of " + std::to_string(greeting.size) + " to rank "
                             + std::to_string(own.rank) + " of " + std::to_string(own.size)
                             + "; start all with the same size and different ranks");
  ranks[static_cast<std::size_t>(greeting.rank)] = std::move(caller.socket);
}

/// Every rank above this one calls.
void wait_for_callers(std::vector<Socket>& ranks, const Greeting& own, const Socket& listener,
                      c10d::Store& store, Deadline deadline) {
  std::vector<Caller> callers;
  while (!std::all_of(ranks.begin() + own.rank + 1, ranks.end(),
                      [](const Socket& socket) { return static_cast<bool>(socket); })) {
    if (Clock::now() >= deadline)
      report_missing_ranks(ranks, own.rank);
    std::vector<pollfd> items{{listener.fd(), POLLIN, 0}};
    for (const Caller& caller : callers)
      items.push_back({caller.socket.fd(), POLLIN, 0});
    if (poll(items.data(), items.size(),
             milliseconds_until(std::min(deadline, Clock::now() + kStoreLook)))
        == 0)
      store.check({address_key(own.rank)}); // throws if the group has been given up
    for (std::size_t i = callers.size(); i-- > 0;) {
      if (items[i + 1].revents == 0 || !callers[i].has_finished())
        continue;
      if (callers[i].is_whole())
        admit(ranks, own, std::move(callers[i]));
      callers.erase(callers.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (items[0].revents != 0)
      if (Socket socket = accept_from(listener, Clock::now()))
        callers.emplace_back(std::move(socket));
    if (callers.size() > kMostCallers)
      callers.erase(callers.begin());
  }
}

} // namespace

std::string rank_name(int rank) {
  return "rank " + std::to_string(rank);
}

std::vector<Socket> connect_ranks(c10d::Store& store, int rank, int size, const std::string& host,
                                  Deadline deadline) {
  const Greeting own{.token = share_token(store, rank), .rank = rank, .size = size};
  const auto listener = listen_at(host, 0);
  const auto address = host + " " + std::to_string(port_of(listener));
  store.set(address_key(rank), std::vector<std::uint8_t>(address.begin(), address.end()));
  std::vector<Socket> ranks(static_cast<std::size_t>(size));
  for (int peer = 0; peer < rank; ++peer)
    ranks[static_cast<std::size_t>(peer)] = connect_to_rank(store, peer, own, deadline);
  wait_for_callers(ranks, own, listener, store, deadline);
  return ranks;
}

} // namespace troupe::collectives
