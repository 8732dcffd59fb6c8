#include "env/legible.hpp"

#include <cstddef>

namespace troupe::env {
namespace {

std::size_t byte(char c) {
  return static_cast<unsigned char>(c);
}

/// The size in bytes of the first character, by the table of RFC 3629; 0 for a control character
/// (including U+0080 to U+009F) or an invalid sequence.
std::size_t character(std::string_view text) {
  const std::size_t first = byte(text[0]);
  if (first < 0x80)
    return first == '\t' || first == '\n' || (first >= 0x20 && first != 0x7f) ? 1 : 0;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size)
    return 0;
  std::size_t least = 0x80, most = 0xbf; // of the second byte
  if (first == 0xc2)
    least = 0xa0;
  else if (first == 0xe0)
    least = 0xa0;
  else if (first == 0xed)
    most = 0x9f;
  else if (first == 0xf0)
    least = 0x90;
  else if (first == 0xf4)
    most = 0x8f;
  if (byte(text[1]) < least || byte(text[1]) > most)
    return 0;
  for (std::size_t i = 2; i < size; ++i)
    if (byte(text[i]) < 0x80 || byte(text[i]) > 0xbf)
      return 0;
  return size;
}

std::string legible_but(char refused, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string made;
  while (!text.empty()) {
    const std::size_t size = text[0] == refused ? 0 : character(text);
    if (size > 0) {
      made += text.substr(0, size);
    } else {
      made += "\\x";
      made += kDigits[byte(text[0]) >> 4];
      made += kDigits[byte(text[0]) & 15];
    }
    text.remove_prefix(size > 0 ? size : 1);
  }
  return made;
}

} // namespace

std::string legible(std::string_view text) {
  return legible_but('\0', text);
}

std::string legible_line(std::string_view text) {
  return legible_but('\n', text);
}

} // namespace troupe::env
