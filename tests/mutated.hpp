#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "env/random.hpp"

namespace troupe {

/// Applies one to four random edits: flipped bytes, cuts, copies of a piece, tokens of text
/// formats.
inline std::string mutated(std::string text, env::Random& random) {
  static const std::vector<std::string> kTokens = {"{",
                                                   "}",
                                                   ":",
                                                   "[",
                                                   "]",
                                                   "<",
                                                   ">",
                                                   "\"",
                                                   "-",
                                                   "#",
                                                   "0",
                                                   "1e999",
                                                   "nan",
                                                   "inf",
                                                   "true",
                                                   "seed: 1",
                                                   "replay {",
                                                   "\n",
                                                   "'",
                                                   "/",
                                                   std::string(1, '\0'),
                                                   "\xff",
                                                   "[a.b/c.d]",
                                                   ";",
                                                   ",",
                                                   "0x7fffffffffffffff"};
  const auto below = [&](std::size_t limit) {
    return limit == 0 ? 0 : static_cast<std::size_t>(random.bits() % limit);
  };
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t count = below(std::min<std::size_t>(text.size() - at, 30) + 1);
    switch (below(4)) {
    case 0:
      if (at < text.size()) {
        text[at] = static_cast<char>(random.bits());
      }
      break;
    case 1:
      text.erase(at, count);
      break;
    case 2:
      text.insert(below(text.size() + 1), text.substr(at, count));
      break;
    default:
      text.insert(at, kTokens[below(kTokens.size())]);
    }
  }
  return text;
}

} // namespace troupe
