#include "env/wire/sharing.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <sys/epoll.h>

#include "env/sockets/peer_user.hpp"
#include "env/text/hexadecimal.hpp"

namespace troupe::env::wire {

namespace {

constexpr std::string_view kName = "troupe-"; // prefix of all listeners' names
constexpr std::size_t kMostStrangers = 64;
constexpr std::chrono::seconds kLongestPause{64};
constexpr std::chrono::seconds kStillUnderWay{1}; // for messages of a peer that has left

std::optional<Join> join_of(const Packet& packet) {
  Join join;
  if (packet.bytes.size() != sizeof join)
    return std::nullopt;
  std::memcpy(&join, packet.bytes.data(), sizeof join);
  if (join.magic != Join{}.magic || join.version != kSharingVersion
      || packet.descriptors.size() != (join.bytes == 0 ? 0U : 2U))
    return std::nullopt;
  return join;
}

bool send(const Descriptor& connection, const Join& join, std::span<const int> descriptors) {
  return send_packet(connection, std::as_bytes(std::span(&join, 1)), descriptors);
}

void check(const SharedMemory& options) {
  const auto fail = [](const std::string& key, std::size_t value, const std::string& rule) {
    throw std::invalid_argument("shared_memory." + key + " is " + std::to_string(value)
                                + " but must be " + rule);
  };
  constexpr std::size_t most = std::size_t{64} << 30; // far below what a reference can address
  if (options.bytes_per_peer < 4096 || options.bytes_per_peer > most)
    fail("bytes_per_peer", options.bytes_per_peer, "4096 to 64 GiB");
  if (options.least_frame_bytes < 1)
    fail("least_frame_bytes", options.least_frame_bytes, "at least 1");
  if (options.max_peers < 1 || options.max_peers > 65536)
    fail("max_peers", options.max_peers, "1 to 65536");
  if (options.max_peer_bytes > most)
    fail("max_peer_bytes", options.max_peer_bytes, "at most 64 GiB");
}

} // namespace

Sharing::Sharing(const SharedMemory& options, bool routed)
    : options_((check(options), options)),
      routed_(routed),
      events_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!events_)
    throw std::runtime_error(std::string("shared memory: epoll_create1: ") + std::strerror(errno));
}

bool Sharing::watch(int number) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = number;
  return ::epoll_ctl(events_.number(), EPOLL_CTL_ADD, number, &event) == 0;
}

std::optional<std::string> Sharing::greeting(Deadline now) {
  if (routed_ || !by_peer_.empty() || now < next_greeting_)
    return std::nullopt;
  greeted_ = make_token();
  next_greeting_ = now + greeting_pause_;
  greeting_pause_ = std::min(2 * greeting_pause_, kLongestPause);
  return encode({.kind = Control::Kind::hello, .token = *greeted_});
}

std::optional<std::string> Sharing::answer(const Control& control, const std::string& peer) {
  if (routed_ && control.kind == Control::Kind::hello)
    return offer(control.token, peer);
  if (!routed_ && control.kind == Control::Kind::offer && greeted_ == control.token
      && by_peer_.empty() && control.address.starts_with(kName))
    connect(control.token, control.address);
  return std::nullopt;
}

std::optional<std::string> Sharing::offer(const Token& token, const std::string& peer) {
  if (links_.contains(token) || links_.size() >= options_.max_peers)
    return std::nullopt;
  if (!listener_) {
    name_ = std::string(kName) + hexadecimal(make_token());
    listener_ = listen_at(name_);
    if (!listener_ || !watch(listener_.number())) {
      listener_ = {};
      ++counters_.refused;
      return std::nullopt;
    }
  }
  if (offered_.size() >= options_.max_peers)
    offered_.erase(offered_.begin());
  offered_.insert_or_assign(token, peer);
  return encode({.kind = Control::Kind::offer, .token = token, .address = name_});
}

void Sharing::connect(const Token& token, const std::string& name) {
  auto link = std::make_unique<Link>();
  link->token = token;
  link->connection = connect_to(name); // fails on another host, where the name does not exist
  if (link->connection && is_own_user(peer_user(link->connection.number())))
    link->out = SharedHeap::make(options_.bytes_per_peer);
  if (!link->out || !send_join(*link) || !watch(link->connection.number())) {
    ++counters_.refused;
    return;
  }
  by_number_[link->connection.number()] = link.get();
  by_peer_[link->peer] = link.get();
  links_[token] = std::move(link);
}

bool Sharing::send_join(const Link& link) {
  const std::array<int, 2> files{link.out->frames().number(), link.out->ledger().number()};
  const bool sent = send(link.connection, {.token = link.token, .bytes = link.out->size()}, files);
  link.out->close_files();
  return sent;
}

void Sharing::accept_strangers() {
  while (Descriptor stranger = accept_from(listener_)) {
    if (!is_own_user(peer_user(stranger.number())) || strangers_.size() >= kMostStrangers
        || !watch(stranger.number())) {
      ++counters_.refused;
      continue;
    }
    const int number = stranger.number();
    strangers_.emplace(number, std::move(stranger));
  }
  // Without free descriptors the listener would stay readable. The next hello opens another one.
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
    listener_ = {};
}

/// The first packet turns the connection into a link, or ends it.
void Sharing::on_stranger(int number) {
  const auto stranger = strangers_.find(number);
  Packet packet;
  const Arrival arrival = receive_packet(stranger->second, sizeof(Join), packet);
  if (arrival == Arrival::nothing)
    return;
  auto link = std::make_unique<Link>();
  link->connection = std::move(stranger->second);
  strangers_.erase(stranger);
  const auto said = arrival == Arrival::packet ? join_of(packet) : std::nullopt;
  const auto offered = said ? offered_.find(said->token) : offered_.end();
  if (offered == offered_.end() || links_.size() >= options_.max_peers) {
    ++counters_.refused;
    return;
  }
  link->token = said->token;
  link->peer = offered->second;
  offered_.erase(offered);
  link->out = SharedHeap::make(options_.bytes_per_peer);
  if (!link->out || !join(*link, packet) || !send_join(*link)) {
    ++counters_.refused;
    return;
  }
  by_number_[number] = link.get();
  by_peer_[link->peer] = link.get();
  links_[link->token] = std::move(link);
}

/// Maps the peer's memory.
bool Sharing::join(Link& link, const Packet& packet) {
  const auto said = join_of(packet);
  if (!said || said->token != link.token || said->bytes == 0 || link.in)
    return false;
  link.in = SharedMapping::open(packet.descriptors[0], packet.descriptors[1], said->bytes,
                                options_.max_peer_bytes);
  return link.in != nullptr;
}

void Sharing::on_link(Link& link) {
  Packet packet;
  const Arrival arrival = receive_packet(link.connection, sizeof(Join), packet);
  if (arrival == Arrival::nothing)
    return;
  bool sound = arrival == Arrival::packet && !link.can_send;
  if (sound && routed_) {
    const auto said = join_of(packet);
    sound = said && said->token == link.token && said->bytes == 0;
  } else if (sound)
    sound = join(link, packet) && send(link.connection, {.token = link.token}, {});
  if (!sound) {
    counters_.refused += link.can_send ? 0 : 1;
    drop(link);
    return;
  }
  link.can_send = true;
  ++counters_.links;
  greeting_pause_ = std::chrono::seconds(1);
}

/// Frees what the peer held. Frames that it sent may still be in flight.
void Sharing::drop(Link& link) {
  by_number_.erase(link.connection.number());
  if (const auto at = by_peer_.find(link.peer); at != by_peer_.end() && at->second == &link)
    by_peer_.erase(at);
  link.connection = {};
  link.out.reset();
  counters_.links -= link.can_send ? 1 : 0;
  link.can_send = false;
  link.gone_at = std::chrono::steady_clock::now();
  some_gone_ = true;
}

void Sharing::pump() {
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(events_.number(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int number = events[static_cast<std::size_t>(i)].data.fd;
    if (number == listener_.number())
      accept_strangers();
    else if (strangers_.contains(number))
      on_stranger(number);
    else if (const auto at = by_number_.find(number); at != by_number_.end())
      on_link(*at->second);
  }
}

void Sharing::sweep(Deadline now) {
  if (!some_gone_)
    return;
  some_gone_ = false;
  std::erase_if(links_, [&](const auto& entry) {
    const auto& gone_at = entry.second->gone_at;
    const bool over = gone_at && now - *gone_at >= kStillUnderWay;
    some_gone_ = some_gone_ || (gone_at && !over);
    return over;
  });
}

Sharing::Link* Sharing::link_to(const std::string& peer) {
  const auto at = by_peer_.find(peer);
  return at == by_peer_.end() || !at->second->can_send ? nullptr : at->second;
}

/// Finds a link by its token rather than its address: a dealer that has reconnected has another
/// address.
Sharing::Link* Sharing::link_of(const Token& token, const std::string& peer) {
  auto at = links_.find(token);
  if (at == links_.end()) {
    pump();
    at = links_.find(token);
  }
  if (at == links_.end() || !at->second->in)
    return nullptr;
  Link& link = *at->second;
  if (routed_ && link.peer != peer && !link.gone_at) {
    if (const auto old = by_peer_.find(link.peer); old != by_peer_.end() && old->second == &link)
      by_peer_.erase(old);
    link.peer = peer;
    by_peer_[peer] = &link;
  }
  return &link;
}

std::shared_ptr<SharedBlock> Sharing::allocate(const std::string& peer, std::size_t size) {
  if (size < options_.least_frame_bytes)
    return nullptr;
  Link* link = link_to(peer);
  auto block = link == nullptr ? nullptr : link->out->allocate(size);
  if (link != nullptr && !block) {
    ++counters_.full;
    link->owes_sequence = true;
  }
  return block;
}

std::string Sharing::move_out(const std::string& peer, std::vector<Frame>& frames) {
  Link* link = link_to(peer);
  if (link == nullptr)
    return {};
  Control control{.token = link->token, .sequence = link->sequence + 1};
  std::size_t kept = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    Frame& frame = frames[i];
    std::shared_ptr<SharedBlock> block = frame.shared_block();
    if (control.references.size() == kMostReferences)
      block.reset();
    else if (!block || block->heap() != link->out.get()) {
      block = allocate(peer, frame.size());
      if (block)
        std::memcpy(block->bytes().data(), std::as_const(frame).bytes().data(), frame.size());
    }
    if (block) {
      control.references.push_back(link->out->send(*block, control.sequence));
      control.references.back().place = static_cast<std::uint16_t>(i);
    } else {
      if (kept != i)
        frames[kept] = std::move(frame);
      ++kept;
    }
  }
  // The sequence number is sent even if the memory is full, because it shows which messages were
  // lost.
  if (control.references.empty() && !link->owes_sequence)
    return {};
  frames.resize(kept);
  ++link->sequence;
  link->owes_sequence = false;
  counters_.frames_sent += std::ssize(control.references);
  return encode(control);
}

bool Sharing::move_in(const Control& control, const std::string& peer, std::vector<Frame>& frames) {
  Link* link = link_of(control.token, peer);
  if (link == nullptr) {
    ++counters_.lost;
    return false;
  }
  std::vector<Frame> all;
  all.reserve(frames.size() + control.references.size());
  auto inline_frame = frames.begin();
  bool sound = true;
  for (const Reference& reference : control.references) {
    while (all.size() < reference.place && inline_frame != frames.end())
      all.push_back(std::move(*inline_frame++));
    auto block = all.size() == reference.place ? link->in->hold(reference) : nullptr;
    sound = sound && block;
    if (sound)
      all.push_back(Frame::shared(std::move(block)));
  }
  link->in->seen(control.sequence);
  if (!sound) {
    ++counters_.lost;
    return false;
  }
  std::move(inline_frame, frames.end(), std::back_inserter(all));
  frames.swap(all);
  counters_.frames_received += std::ssize(control.references);
  return true;
}

} // namespace troupe::env::wire
