#include "collectives/mesh/control_mesh.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::collectives {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kFingerprint = 0x54460001;
constexpr std::uint32_t kAbort = 0x54460002;
constexpr std::uint32_t kHere =
    0x54460003; // data failed here, or this rank was informed that they did
constexpr std::size_t kLongestReason = 2000;        // bytes
constexpr std::size_t kMostCallers = 256;           // not known yet; above it the oldest is closed
constexpr std::chrono::milliseconds kFarewell{200}; // for the others to read an abort
constexpr std::chrono::milliseconds kStoreLook{1000}; // between two attempts to reach the store
constexpr std::chrono::milliseconds kDiagnosis{1000}; // for the news of a death to arrive

struct Header {
  std::uint32_t kind = 0;
  std::uint32_t bytes = 0;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::string key_of(int rank) { // in the store: its address
  return "troupe/control/" + std::to_string(rank);
}

std::string rank_name(int rank) {
  return "rank " + std::to_string(rank);
}

} // namespace

struct ControlMesh::Hello {
  std::uint64_t token[2] = {0, 0}; // known only to readers of the group's store
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

/// A connection that has not greeted yet. All are read at once, so that a silent one delays no
/// other.
struct ControlMesh::Caller {
  Socket socket;
  Hello hello{};
  std::size_t got = 0; // bytes of it
  bool gone = false;

  explicit Caller(Socket from) : socket(std::move(from)) {}
  bool is_whole() const { return got == sizeof hello; }

  /// Reads what has arrived; returns true if the greeting is complete or can no longer be valid.
  bool has_finished() {
    auto* bytes = reinterpret_cast<std::byte*>(&hello);
    const auto more = recv(socket.fd(), bytes + got, sizeof hello - got, 0);
    if (more > 0)
      got += static_cast<std::size_t>(more);
    else
      gone = more == 0 || (errno != EAGAIN && errno != EINTR);
    return is_whole() || gone;
  }
};

ControlMesh::ControlMesh(c10d::Store& store, int rank, int size, const Options& options)
    : rank_(rank),
      timeout_(options.timeout),
      peers_(static_cast<std::size_t>(size)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (size > 1)
    connect(store, options);
}

void ControlMesh::connect(c10d::Store& store, const Options& options) {
  const auto deadline = Clock::now() + options.connect_timeout;
  if (rank_ == 0) {
    // A secret, not a seed: it never reaches a number of the run.
    if (getrandom(token_, sizeof token_, 0) != static_cast<ssize_t>(sizeof token_))
      throw std::runtime_error("the system gives no random bytes for the group's token");
    const auto* raw = reinterpret_cast<const std::uint8_t*>(token_);
    store.set("troupe/token", std::vector<std::uint8_t>(raw, raw + sizeof token_));
  } else {
    const auto raw = store.get("troupe/token");
    if (raw.size() != sizeof token_)
      throw std::runtime_error("the rendezvous holds a token of a foreign program; is the port "
                               "the one of this group's rank 0?");
    std::memcpy(token_, raw.data(), sizeof token_);
  }
  const auto listener = listen_at(options.host, 0);
  const auto address = options.host + " " + std::to_string(port_of(listener));
  store.set(key_of(rank_), std::vector<std::uint8_t>(address.begin(), address.end()));
  for (int peer = 0; peer < rank_; ++peer) {
    std::vector<std::uint8_t> raw;
    try {
      raw = store.get(key_of(peer));
    } catch (const std::exception& error) {
      throw std::runtime_error(rank_name(peer)
                               + " did not come to the rendezvous: " + error.what());
    }
    const std::string text(raw.begin(), raw.end());
    const auto space = text.find(' ');
    const auto port = space == std::string::npos ? 0 : std::atoi(text.c_str() + space);
    greet(peer, connect_to(text.substr(0, space), port, deadline), deadline);
  }
  wait_for_callers(listener, store, deadline);
}

void ControlMesh::greet(int peer, Socket socket, Deadline deadline) {
  Hello mine{{token_[0], token_[1]}, rank_, static_cast<int>(peers_.size())};
  if (!send_all(socket, bytes_of(mine), deadline))
    throw std::runtime_error(rank_name(peer) + " closed the connection during the rendezvous");
  peers_[static_cast<std::size_t>(peer)].socket = std::move(socket);
}

void ControlMesh::wait_for_callers(const Socket& listener, c10d::Store& store, Deadline deadline) {
  std::vector<Caller> callers;
  while (std::any_of(peers_.begin() + rank_ + 1, peers_.end(),
                     [](const Peer& peer) { return !peer.socket; })) {
    if (Clock::now() >= deadline)
      say_who_is_missing();
    std::vector<pollfd> items{{listener.fd(), POLLIN, 0}};
    for (const Caller& caller : callers)
      items.push_back({caller.socket.fd(), POLLIN, 0});
    if (poll(items.data(), items.size(),
             milliseconds_until(std::min(deadline, Clock::now() + kStoreLook)))
        == 0)
      store.check({key_of(rank_)}); // throws if the group has been given up
    for (std::size_t i = callers.size(); i-- > 0;) {
      if (items[i + 1].revents == 0 || !callers[i].has_finished())
        continue;
      if (callers[i].is_whole())
        admit(std::move(callers[i].socket), callers[i].hello);
      callers.erase(callers.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (items[0].revents != 0)
      if (Socket socket = accept_from(listener, Clock::now()))
        callers.emplace_back(std::move(socket));
    if (callers.size() > kMostCallers)
      callers.erase(callers.begin());
  }
}

void ControlMesh::say_who_is_missing() const {
  std::string missing;
  for (int peer = rank_ + 1; peer < static_cast<int>(peers_.size()); ++peer)
    if (!peers_[static_cast<std::size_t>(peer)].socket)
      missing += (missing.empty() ? "" : ", ") + rank_name(peer);
  throw std::runtime_error("rendezvous: " + missing + " did not come; was it started, and for "
                           + std::to_string(peers_.size()) + " ranks?");
}

void ControlMesh::admit(Socket socket, const Hello& hello) {
  if (hello.token[0] != token_[0] || hello.token[1] != token_[1])
    return; // a stranger
  const int size = static_cast<int>(peers_.size());
  if (hello.size != size || hello.rank <= rank_ || hello.rank >= size)
    throw std::runtime_error("rendezvous: a process came as rank " + std::to_string(hello.rank)
                             + " of " + std::to_string(hello.size) + " to rank "
                             + std::to_string(rank_) + " of " + std::to_string(size)
                             + "; start all with the same size and different ranks");
  peers_[static_cast<std::size_t>(hello.rank)].socket = std::move(socket);
}

ControlMesh::~ControlMesh() {
  if (!poisoned_.load())
    return;
  // A rank that sees this one leave reads the reason first, even if the abort is still on its way.
  // Closing with unread bytes would reset the connection and lose the reason.
  send_abort();
  const auto deadline = Clock::now() + kFarewell;
  for (auto& peer : peers_)
    if (peer.socket)
      shutdown(peer.socket.fd(), SHUT_WR);
  for (auto& peer : peers_) {
    std::byte rest[512];
    while (peer.socket && !peer.closed && Clock::now() < deadline)
      peer.closed = !receive_all(peer.socket, rest, deadline);
  }
}

void ControlMesh::send(std::uint32_t kind, std::span<const std::byte> payload, bool all_must_read) {
  std::vector<std::byte> frame(sizeof(Header) + payload.size());
  const Header header{kind, static_cast<std::uint32_t>(payload.size())};
  std::memcpy(frame.data(), &header, sizeof header);
  if (!payload.empty())
    std::memcpy(frame.data() + sizeof header, payload.data(), payload.size());
  const auto deadline = Clock::now() + (all_must_read ? timeout_ : std::chrono::milliseconds(0));
  const std::lock_guard lock(mutex_);
  for (auto& peer : peers_)
    if (peer.socket)
      send_all(peer.socket, frame, deadline); // a lost rank is found when reading
}

/// Reads what has arrived. False once the peer has closed.
bool ControlMesh::read(int rank) {
  auto& peer = peers_[static_cast<std::size_t>(rank)];
  std::byte chunk[4096];
  while (!peer.closed) {
    const auto got = recv(peer.socket.fd(), chunk, sizeof chunk, 0);
    if (got > 0)
      peer.inbox.insert(peer.inbox.end(), chunk, chunk + got);
    else if (got < 0 && errno == EINTR)
      continue;
    else if (got < 0 && errno == EAGAIN)
      break;
    else
      peer.closed = true;
    if (got > 0 && static_cast<std::size_t>(got) < sizeof chunk)
      break;
  }
  return !peer.closed;
}

/// The next fingerprint of the peer, if it has arrived. Throws on an abort and on invalid frames.
bool ControlMesh::take(int rank, Fingerprint& fingerprint) {
  auto& inbox = peers_[static_cast<std::size_t>(rank)].inbox;
  Header header;
  if (inbox.size() < sizeof header)
    return false;
  std::memcpy(&header, inbox.data(), sizeof header);
  if (header.kind == kHere && header.bytes == 0) {
    heed(rank);
    return take(rank, fingerprint);
  }
  const bool known = (header.kind == kFingerprint && header.bytes == sizeof(Fingerprint))
                     || (header.kind == kAbort && header.bytes <= kLongestReason);
  if (!known)
    fail(rank_name(rank) + " sent bytes that are not a frame of this version");
  if (inbox.size() < sizeof header + header.bytes)
    return false;
  const auto* payload = inbox.data() + sizeof header;
  if (header.kind == kAbort) {
    poison_locally(std::string(reinterpret_cast<const char*>(payload), header.bytes));
    check();
  }
  std::memcpy(&fingerprint, payload, sizeof fingerprint);
  inbox.erase(inbox.begin(),
              inbox.begin() + static_cast<std::ptrdiff_t>(sizeof header + header.bytes));
  return true;
}

/// Handles what has arrived, but leaves the fingerprint of the peer's next call.
void ControlMesh::heed(int rank) {
  auto& peer = peers_[static_cast<std::size_t>(rank)];
  Header header{};
  while (peer.inbox.size() >= sizeof header) {
    std::memcpy(&header, peer.inbox.data(), sizeof header);
    if (header.kind != kHere || header.bytes != 0)
      break;
    peer.inbox.erase(peer.inbox.begin(), peer.inbox.begin() + sizeof header);
    peer.here = true;
    say_here();
  }
  if (Fingerprint ignored; peer.inbox.size() >= sizeof header && header.kind == kAbort)
    take(rank, ignored);
}

void ControlMesh::say_here() {
  if (!std::exchange(said_here_, true))
    send(kHere, {}, false);
}

void ControlMesh::wait(const std::vector<char>& arrived, Deadline deadline) {
  std::vector<pollfd> entries{{wake_.fd(), POLLIN, 0}};
  for (std::size_t rank = 0; rank < peers_.size(); ++rank)
    if (!arrived[rank])
      entries.push_back({peers_[rank].socket.fd(), POLLIN, 0});
  poll(entries.data(), entries.size(), milliseconds_until(deadline));
}

Fingerprint ControlMesh::agree(Fingerprint mine) {
  check();
  mine.sequence = sequence_++;
  if (peers_.size() == 1)
    return mine;
  const auto deadline = Clock::now() + timeout_;
  send(kFingerprint, bytes_of(mine), true);
  std::vector<Fingerprint> calls(peers_.size());
  std::vector<char> arrived(peers_.size());
  calls[static_cast<std::size_t>(rank_)] = mine;
  arrived[static_cast<std::size_t>(rank_)] = 1;
  for (;;) {
    bool all = true;
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      if (arrived[i])
        continue;
      const bool open = read(rank);
      arrived[i] = take(rank, calls[i]);
      all = all && arrived[i];
      if (!arrived[i] && !open)
        fail(call_name(mine) + ": " + rank_name(rank) + " died or left while rank "
             + std::to_string(rank_) + " waited for it");
    }
    if (all)
      break;
    check();
    if (Clock::now() >= deadline)
      fail(describe_late(calls, arrived, timeout_));
    wait(arrived, deadline);
  }
  // A rank that comes too late finds here that the others gave up, before it waits for their data.
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank)
    heed(rank);
  if (const auto mismatch = describe_mismatch(calls); !mismatch.empty()) {
    poison_locally(mismatch); // every rank finds the same
    check();
  }
  return mine;
}

bool ControlMesh::someone_left() {
  check();
  bool left = false;
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    if (rank == rank_)
      continue;
    left = !read(rank) || left;
    heed(rank);
  }
  return left;
}

void ControlMesh::data_failed(const Fingerprint& call, const std::string& error) {
  check();
  say_here();
  const auto name = call_name(call) + " (" + describe(call, false) + ")";
  const auto deadline = Clock::now() + std::min(timeout_, kDiagnosis);
  std::vector<char> ignored(peers_.size());
  ignored[static_cast<std::size_t>(rank_)] = 1;
  std::string silent;
  do {
    silent.clear();
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      if (rank == rank_)
        continue;
      Fingerprint next;
      const bool open = read(rank);
      while (take(rank, next)) {
      }
      if (!open)
        fail(name + ": " + rank_name(rank) + " died or left");
      if (!peers_[static_cast<std::size_t>(rank)].here)
        silent += (silent.empty() ? "" : ", ") + rank_name(rank);
    }
    wait(ignored, deadline);
  } while (Clock::now() < deadline);
  if (!silent.empty())
    fail(name + ": " + silent + " does not answer: frozen, or too slow for the deadline");
  fail(name + " failed on rank " + std::to_string(rank_) + ": " + error);
}

void ControlMesh::poison_locally(const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (poisoned_.load())
    return;
  message_ = message;
  poisoned_.store(true);
}

void ControlMesh::abort(const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    if (poisoned_.load())
      return;
    message_ = message;
    poisoned_.store(true);
  }
  send_abort();
  const std::uint64_t one = 1;
  if (write(wake_.fd(), &one, sizeof one) < 0)
    return; // the counter is full: it wakes anyway
}

void ControlMesh::send_abort() {
  const auto sent = message_.substr(0, kLongestReason); // fixed once poisoned
  send(kAbort, std::as_bytes(std::span(sent)), false);
}

void ControlMesh::fail(const std::string& message) {
  abort(message);
  check();
  throw CollectiveError(message);
}

void ControlMesh::check() const {
  if (!poisoned_.load())
    return;
  const std::lock_guard lock(mutex_);
  throw CollectiveError(message_);
}

} // namespace troupe::collectives
