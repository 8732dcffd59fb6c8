#include "collectives/mesh/control_mesh.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "collectives/mesh/connect_ranks.hpp"

namespace troupe::collectives {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFarewell{200};   // time for other ranks to read an abort
constexpr std::chrono::milliseconds kDiagnosis{1000}; // time for the news of a death to arrive

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

} // namespace

ControlMesh::ControlMesh(c10d::Store& store, int rank, int size, const CommunicatorOptions& options,
                         const std::string& interface_host)
    : rank_(rank),
      timeout_(options.timeout),
      peers_(static_cast<std::size_t>(size)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (size == 1)
    return;
  auto sockets = connect_ranks(store, rank, size,
                               {.host = interface_host,
                                .trust = options.trust,
                                .deadline = Clock::now() + options.connect_timeout});
  for (std::size_t peer = 0; peer < peers_.size(); ++peer)
    peers_[peer].socket = std::move(sockets[peer]);
}

ControlMesh::~ControlMesh() {
  if (!poisoned_.load())
    return;
  // A rank that sees this one leave must first read the reason, even if the abort is still in
  // transit. Closing with unread bytes would reset the connection and lose the reason.
  send_abort();
  const auto deadline = Clock::now() + kFarewell;
  for (auto& peer : peers_)
    if (peer.socket)
      peer.socket.close_sending();
  for (auto& peer : peers_) {
    std::byte rest[512];
    while (peer.socket && !peer.closed && Clock::now() < deadline)
      peer.closed = !receive_all(peer.socket, rest, deadline);
  }
}

void ControlMesh::send(FrameKind kind, std::span<const std::byte> content,
                       std::span<const std::byte> payload, bool all_must_read) {
  const auto frame = encode_frame(kind, content, payload);
  const auto deadline = Clock::now() + (all_must_read ? timeout_ : std::chrono::milliseconds(0));
  const std::lock_guard lock(mutex_);
  for (auto& peer : peers_)
    if (peer.socket)
      send_all(peer.socket, frame, deadline); // a lost rank is detected when reading
}

/// Reads what has arrived. Returns false once the peer has closed the connection.
bool ControlMesh::read(int rank) {
  auto& peer = peers_[static_cast<std::size_t>(rank)];
  std::byte chunk[4096];
  while (!peer.closed) {
    std::unique_lock lock(mutex_);
    peer.socket.flush();
    const auto got = peer.socket.receive(chunk);
    lock.unlock();
    peer.closed = !got;
    if (got.value_or(0) == 0)
      break;
    peer.inbox.insert(peer.inbox.end(), chunk, chunk + *got);
  }
  return !peer.closed;
}

/// Returns the first frame of the peer's inbox if it has arrived. Throws on invalid frames.
std::optional<ControlFrame> ControlMesh::frame_from(int rank) {
  try {
    return first_frame(peers_[static_cast<std::size_t>(rank)].inbox);
  } catch (const std::invalid_argument& problem) {
    fail(rank_name(rank) + " sent " + problem.what());
  }
}

void ControlMesh::drop_frame(int rank, const ControlFrame& frame) {
  auto& inbox = peers_[static_cast<std::size_t>(rank)].inbox;
  inbox.erase(inbox.begin(), inbox.begin() + static_cast<std::ptrdiff_t>(frame.bytes));
}

/// Takes the peer's next fingerprint and returns true if it has arrived. Throws on an abort and on
/// invalid frames.
bool ControlMesh::take_fingerprint(int rank, Fingerprint& fingerprint,
                                   std::vector<std::byte>* payload) {
  handle_notices(rank);
  const auto frame = frame_from(rank);
  if (!frame)
    return false;
  fingerprint = frame->fingerprint;
  if (payload)
    payload->assign(frame->rest.begin(), frame->rest.end());
  drop_frame(rank, *frame);
  return true;
}

/// Handles the notices that have arrived, but leaves the fingerprint of the peer's next call.
/// Throws on an abort.
void ControlMesh::handle_notices(int rank) {
  for (;;) {
    const auto frame = frame_from(rank);
    if (!frame || frame->kind == FrameKind::fingerprint)
      return;
    if (frame->kind == FrameKind::abort) {
      poison_locally(
          std::string(reinterpret_cast<const char*>(frame->rest.data()), frame->rest.size()));
      check();
    }
    drop_frame(rank, *frame);
    peers_[static_cast<std::size_t>(rank)].failure_answered = true;
    answer_failure();
  }
}

void ControlMesh::answer_failure() {
  if (!std::exchange(failure_answered_, true))
    send(FrameKind::data_failed, {}, {}, false);
}

void ControlMesh::wait(const std::vector<char>& arrived, Deadline deadline) {
  std::vector<pollfd> entries{{wake_.fd(), POLLIN, 0}};
  for (std::size_t rank = 0; rank < peers_.size(); ++rank)
    if (!arrived[rank])
      entries.push_back({peers_[rank].socket.fd(), POLLIN, 0});
  poll(entries.data(), entries.size(), milliseconds_until(deadline));
}

void ControlMesh::add_news(std::vector<pollfd>& items) const {
  items.push_back({wake_.fd(), POLLIN, 0});
  for (const auto& peer : peers_)
    if (peer.socket && !peer.closed)
      items.push_back({peer.socket.fd(), POLLIN, 0});
}

Fingerprint ControlMesh::agree(Fingerprint mine, std::span<const std::byte> payload,
                               std::vector<std::vector<std::byte>>* payloads) {
  check();
  mine.sequence = sequence_++;
  if (payloads)
    payloads->resize(peers_.size());
  if (peers_.size() == 1)
    return mine;
  const auto deadline = Clock::now() + timeout_;
  send(FrameKind::fingerprint, bytes_of(mine), payload, true);
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
      arrived[i] = take_fingerprint(rank, calls[i], payloads ? &(*payloads)[i] : nullptr);
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
  // A rank that is too late learns here that the others gave up, before it waits for their data.
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank)
    handle_notices(rank);
  if (const auto mismatch = describe_mismatch(calls); !mismatch.empty()) {
    poison_locally(mismatch); // every rank finds the same mismatch
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
    handle_notices(rank);
  }
  return left;
}

void ControlMesh::data_failed(const Fingerprint& call, const std::string& error) {
  check();
  answer_failure();
  const auto details = describe(call, false); // a barrier has none
  const auto name = call_name(call) + (details.empty() ? "" : " (" + details + ")");
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
      while (take_fingerprint(rank, next, nullptr)) {
      }
      if (!open)
        fail(name + ": " + rank_name(rank) + " died or left");
      if (!peers_[static_cast<std::size_t>(rank)].failure_answered)
        silent += (silent.empty() ? "" : ", ") + rank_name(rank);
    }
    wait(ignored, deadline);
  } while (Clock::now() < deadline);
  if (!silent.empty())
    fail(name + ": " + silent + " does not answer: frozen, or too slow for the deadline");
  const auto line = error.substr(0, error.find('\n')); // LibTorch appends a long stack trace
  fail(name + " failed on rank " + std::to_string(rank_) + ": " + line);
}

/// Returns false if the mesh is already poisoned.
bool ControlMesh::poison_locally(const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (poisoned_.load())
    return false;
  message_ = message;
  poisoned_.store(true);
  return true;
}

void ControlMesh::abort(const std::string& message) {
  if (!poison_locally(message))
    return;
  send_abort();
  const std::uint64_t one = 1;
  if (write(wake_.fd(), &one, sizeof one) < 0)
    return; // the counter is full, which also wakes the thread
}

void ControlMesh::send_abort() {
  const auto sent = message_.substr(0, kLongestReason); // does not change once poisoned
  send(FrameKind::abort, std::as_bytes(std::span(sent)), {}, false);
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
