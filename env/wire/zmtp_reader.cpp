#include "env/wire/zmtp_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::env::wire {

namespace {

constexpr std::size_t kGreetingBytes = 64;
constexpr std::size_t kMostCommandBytes = 4096;
constexpr std::size_t kReceivedInPlace = 64 << 10; // smaller parts are copied from the buffer
constexpr auto kMore = std::byte{1};
constexpr auto kLong = std::byte{2};
constexpr auto kCommand = std::byte{4};
constexpr char kMechanism[20] = "NULL";

/// Whether the bytes of a greeting received so far are those of version 3 without security.
bool greets(std::span<const std::byte> text) {
  constexpr std::size_t kMarkAt = 9;
  constexpr std::size_t kVersionAt = 10;
  constexpr std::size_t kMechanismAt = 12;
  return text[0] == std::byte{0xff} && (text.size() <= kMarkAt || text[kMarkAt] == std::byte{0x7f})
         && (text.size() <= kVersionAt || text[kVersionAt] >= std::byte{3})
         && (text.size() < kMechanismAt + sizeof kMechanism
             || std::memcmp(text.data() + kMechanismAt, kMechanism, sizeof kMechanism) == 0);
}

} // namespace

ZmtpReader::Event ZmtpReader::take(std::span<const std::byte>& bytes) {
  const auto copy = [&](std::byte* to, std::size_t most) {
    const std::size_t count = std::min(most, bytes.size());
    if (count > 0)
      std::memcpy(to, bytes.data(), count);
    bytes = bytes.subspan(count);
    have_ += count;
    return have_;
  };
  while (!bytes.empty()) {
    Event event = Event::nothing;
    switch (state_) {
    case State::greeting:
      copy(head_.data() + have_, kGreetingBytes - have_);
      if (!greets(std::span(head_).first(have_)))
        state_ = State::broken;
      else if (have_ == kGreetingBytes) {
        have_ = 0;
        state_ = State::head;
      }
      break;
    case State::head: {
      const std::size_t wanted = have_ > 0 && (head_[0] & kLong) != std::byte{0} ? 9 : 2;
      copy(head_.data() + have_, (have_ == 0 ? 1 : wanted) - have_);
      if (have_ > 1 && have_ == wanted)
        event = end_of_head();
      break;
    }
    case State::part: {
      const std::size_t before = have_;
      const bool whole = copy(part_.bytes().data() + have_, size_ - have_) == size_;
      bytes_ += have_ - before;
      event = whole ? end_of_part() : Event::nothing;
      break;
    }
    case State::command:
      if (copy(reinterpret_cast<std::byte*>(command_.data()) + have_, size_ - have_) == size_)
        event = end_of_command();
      break;
    case State::skipped: {
      const std::size_t count = std::min(size_ - have_, bytes.size());
      bytes = bytes.subspan(count);
      if ((have_ += count) == size_)
        event = end_of_part();
      break;
    }
    case State::broken:
      return Event::stranger;
    }
    if (event != Event::nothing)
      return event;
  }
  return state_ == State::broken ? Event::stranger : Event::nothing;
}

ZmtpReader::Event ZmtpReader::end_of_head() {
  const std::byte flags = head_[0];
  std::uint64_t size = std::to_integer<std::uint64_t>(head_[1]);
  if ((flags & kLong) != std::byte{0}) {
    size = 0;
    for (std::size_t i = 1; i <= 8; ++i)
      size = size << 8 | std::to_integer<std::uint64_t>(head_[i]);
  }
  have_ = 0;
  const bool is_command = (flags & kCommand) != std::byte{0};
  more_ = (flags & kMore) != std::byte{0};
  const bool known =
      (flags & ~(kMore | kLong | kCommand)) == std::byte{0} && !(is_command && more_);
  // A command may come between messages, not within one.
  if (!known || size > (is_command ? kMostCommandBytes : limits_.max_part_bytes)
      || (is_command ? parts_ > 0 : !ready_)) {
    state_ = State::broken;
    return Event::stranger;
  }
  size_ = static_cast<std::size_t>(size);
  if (is_command) {
    command_.resize(size_);
    state_ = State::command;
    return size_ == 0 ? end_of_command() : Event::nothing;
  }
  ++parts_;
  announced_bytes_ += size_;
  if (parts_ > limits_.max_parts || announced_bytes_ > limits_.max_message_bytes) {
    message_.cut = true;
    message_.parts.clear();
    bytes_ = 0;
    parts_ = limits_.max_parts; // so that no count grows while the rest is skipped
    announced_bytes_ = limits_.max_message_bytes;
  }
  state_ = message_.cut ? State::skipped : State::part;
  if (!message_.cut)
    part_ = Frame(size_);
  return size_ == 0 ? end_of_part() : Event::nothing;
}

ZmtpReader::Event ZmtpReader::end_of_part() {
  if (!message_.cut)
    message_.parts.push_back(std::move(part_));
  part_ = Frame();
  have_ = 0;
  state_ = State::head;
  return more_ ? Event::nothing : Event::message;
}

ZmtpReader::Event ZmtpReader::end_of_command() {
  have_ = 0;
  state_ = State::head;
  const std::string ready("\5READY", 6);
  if (ready_)
    return Event::command;
  if (!command_.starts_with(ready)) {
    state_ = State::broken;
    return Event::stranger;
  }
  ready_ = true;
  return Event::nothing;
}

std::span<std::byte> ZmtpReader::gap() {
  if (state_ != State::part || size_ - have_ < kReceivedInPlace)
    return {};
  return part_.bytes().subspan(have_);
}

ZmtpReader::Event ZmtpReader::filled(std::size_t bytes) {
  have_ += bytes;
  bytes_ += bytes;
  return have_ == size_ ? end_of_part() : Event::nothing;
}

ZmtpMessage ZmtpReader::take_message() {
  parts_ = 0;
  bytes_ = 0;
  announced_bytes_ = 0;
  return std::exchange(message_, {});
}

std::vector<std::byte> zmtp_hello(const std::string& socket_type) {
  std::vector<std::byte> hello(kGreetingBytes);
  hello[0] = std::byte{0xff};
  hello[9] = std::byte{0x7f};
  hello[10] = std::byte{3};
  std::memcpy(hello.data() + 12, kMechanism, sizeof kMechanism);
  std::string ready("\5READY\13Socket-Type\0\0\0", 21);
  ready += static_cast<char>(socket_type.size());
  ready += socket_type;
  append_zmtp_head(hello, ready.size(), false, true);
  const auto bytes = std::as_bytes(std::span(ready));
  hello.insert(hello.end(), bytes.begin(), bytes.end());
  return hello;
}

void append_zmtp_head(std::vector<std::byte>& to, std::size_t size, bool more, bool command) {
  constexpr std::size_t kMostShort = 255;
  const std::byte flags = (more ? kMore : std::byte{0}) | (command ? kCommand : std::byte{0});
  if (size <= kMostShort) {
    to.insert(to.end(), {flags, static_cast<std::byte>(size)});
    return;
  }
  to.push_back(flags | kLong);
  for (int shift = 56; shift >= 0; shift -= 8)
    to.push_back(static_cast<std::byte>(size >> shift));
}

} // namespace troupe::env::wire
