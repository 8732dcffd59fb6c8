#include "env/wire/publication.hpp"

#include <cstring>
#include <utility>

namespace troupe::env::wire {

namespace {

constexpr std::uint32_t kPublicationMagic = 0x50505254; // "TRPP"
constexpr std::uint32_t kFormat = 1;

struct PublicationHead {
  std::uint32_t magic = kPublicationMagic;
  std::uint32_t format = kFormat;
  std::uint64_t version = 0;
  std::uint64_t floats = 0;
};

constexpr std::size_t kSmall = 256; // bytes

Frame steady_copy(std::span<const std::byte> bytes) {
  const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  return Frame::view(*copy, copy);
}

SocketOptions publication_options(std::size_t max_floats) {
  return {.max_frame_bytes = sizeof(PublicationHead) + max_floats * sizeof(float),
          .max_frames = 1,
          .keep_newest_only = true};
}

SocketOptions with(SocketOptions options, std::optional<ServerKeys> keys) {
  options.server_keys = std::move(keys);
  return options;
}

SocketOptions with(SocketOptions options, std::optional<ClientKeys> keys) {
  options.client_keys = std::move(keys);
  return options;
}

} // namespace

Publisher::Publisher(Context& context, const std::string& endpoint, std::optional<ServerKeys> keys)
    : socket_(context, SocketType::publisher, with(publication_options(0), std::move(keys))),
      endpoint_(socket_.bind(endpoint)) {}

void Publisher::publish(std::uint64_t version, std::span<const float> values) {
  auto bytes =
      std::make_shared<std::vector<std::byte>>(sizeof(PublicationHead) + values.size_bytes());
  const PublicationHead head{.version = version, .floats = values.size()};
  std::memcpy(bytes->data(), &head, sizeof head);
  if (!values.empty())
    std::memcpy(bytes->data() + sizeof head, values.data(), values.size_bytes());
  last_ = std::move(bytes);
  repeat();
}

void Publisher::repeat() {
  if (!last_)
    return;
  Message message;
  message.frames.push_back(Frame::view(*last_, last_));
  socket_.send(std::move(message), std::chrono::steady_clock::now());
}

Subscriber::Subscriber(Context& context, const std::string& endpoint, std::size_t max_floats,
                       std::optional<ClientKeys> keys)
    : socket_(context, SocketType::subscriber,
              with(publication_options(max_floats), std::move(keys))) {
  socket_.connect(endpoint);
}

std::optional<Received> Subscriber::poll() {
  for (;;) {
    Message message;
    const auto got = socket_.try_receive(message);
    if (got == Socket::Received::nothing)
      return std::nullopt;
    PublicationHead head;
    if (got == Socket::Received::oversized || message.frames.size() != 1
        || message.frames[0].size() < sizeof head) {
      ++garbage_;
      continue;
    }
    Frame frame = std::move(message.frames[0]);
    const auto size = frame.size();
    std::memcpy(&head, frame.bytes().data(), sizeof head);
    if (head.magic != kPublicationMagic || head.format != kFormat
        || head.floats != (size - sizeof head) / sizeof(float)
        || (size - sizeof head) % sizeof(float) != 0) {
      ++garbage_;
      continue;
    }
    if (last_version_ == head.version)
      continue;
    last_version_ = head.version;
    // A small message may begin anywhere in ZeroMQ's buffer, or be stored in the Frame itself, but
    // `values` needs aligned memory that does not move.
    if (size < kSmall
        || reinterpret_cast<std::uintptr_t>(std::as_const(frame).bytes().data()) % alignof(float)
               != 0)
      frame = steady_copy(std::as_const(frame).bytes());
    Received received{.version = head.version, .values = {}, .frame = std::move(frame)};
    received.values = {reinterpret_cast<const float*>(received.frame.bytes().data() + sizeof head),
                       static_cast<std::size_t>(head.floats)};
    return received;
  }
}

std::optional<Received> Subscriber::wait(Deadline deadline) {
  for (;;) {
    if (auto received = poll())
      return received;
    if (!socket_.wait(deadline))
      return poll();
  }
}

} // namespace troupe::env::wire
