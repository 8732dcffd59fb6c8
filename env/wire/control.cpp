#include "env/wire/control.hpp"

#include <bit>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/random.h>

namespace troupe::env::wire {

namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(Reference) == 16);

constexpr std::array<char, 8> kControlMagic{'\0', 'T', 'r', 'o', 'u', 'p', 'e', '\x01'};
constexpr std::size_t kMostAddress = 64; // bytes

struct ControlHead {
  std::array<char, 8> magic = kControlMagic;
  std::uint16_t version = kSharingVersion;
  std::uint16_t kind = 0;
  std::uint32_t count = 0; // references, or bytes of the address
  Token token = {};
  std::uint64_t sequence = 0;
};
static_assert(sizeof(ControlHead) == 40);
static_assert(sizeof(ControlHead) + kMostReferences * sizeof(Reference) < 1024);

} // namespace

bool is_control(std::span<const std::byte> part) {
  return part.size() >= kControlMagic.size()
         && std::memcmp(part.data(), kControlMagic.data(), kControlMagic.size()) == 0;
}

bool is_control(std::string_view header) {
  return is_control(std::as_bytes(std::span(header)));
}

std::string encode(const Control& control) {
  const bool listed = control.kind == Control::Kind::frames;
  ControlHead head;
  head.kind = static_cast<std::uint16_t>(control.kind);
  head.count =
      static_cast<std::uint32_t>(listed ? control.references.size() : control.address.size());
  head.token = control.token;
  head.sequence = control.sequence;
  const std::size_t references = listed ? control.references.size() * sizeof(Reference) : 0;
  std::string text(sizeof head + references, '\0');
  std::memcpy(text.data(), &head, sizeof head);
  if (references > 0)
    std::memcpy(text.data() + sizeof head, control.references.data(), references);
  return listed ? text : text + control.address;
}

std::optional<Control> decode_control(std::span<const std::byte> part) {
  ControlHead head;
  if (!is_control(part) || part.size() < sizeof head)
    return std::nullopt;
  std::memcpy(&head, part.data(), sizeof head);
  const auto rest = part.subspan(sizeof head);
  if (head.version != kSharingVersion)
    return std::nullopt;
  Control control;
  control.kind = static_cast<Control::Kind>(head.kind);
  control.token = head.token;
  control.sequence = head.sequence;
  switch (control.kind) {
  case Control::Kind::hello:
    return rest.empty() && head.count == 0 ? std::optional(control) : std::nullopt;
  case Control::Kind::offer:
    if (rest.size() != head.count || rest.empty() || rest.size() > kMostAddress)
      return std::nullopt;
    control.address.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
    return control;
  case Control::Kind::frames:
    if (head.count > kMostReferences || rest.size() != head.count * sizeof(Reference))
      return std::nullopt;
    control.references.resize(head.count);
    if (!rest.empty())
      std::memcpy(control.references.data(), rest.data(), rest.size());
    for (std::size_t i = 1; i < control.references.size(); ++i)
      if (control.references[i].place <= control.references[i - 1].place)
        return std::nullopt;
    return control;
  }
  return std::nullopt;
}

Token make_token() {
  Token token{};
  while (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size()))
    if (errno != EINTR)
      throw std::runtime_error(std::string("cannot get random bytes from the system: ")
                               + std::strerror(errno));
  return token;
}

} // namespace troupe::env::wire
