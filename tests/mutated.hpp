#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/mutated.hpp"

namespace troupe {

<<<<<<<< HEAD:tests/mutated.hpp
/// Applies one to four random edits: flipped bytes, cuts, copies of a piece, tokens of text
/// formats.
========
/// Applies random edits, with tokens of Protobuf's text format and of JSON.
>>>>>>>> 8a6244db (Use one byte mutator, one ZeroMQ peer and one list of file calls in tests):tests/experiments/mutated.hpp
inline std::string mutated(std::string text, env::Random& random) {
  using namespace std::string_literals;
  static const std::vector<std::string> kTokens = {"{",         "}",
                                                   ":",         "[",
                                                   "]",         "<",
                                                   ">",         "\"",
                                                   "-",         "#",
                                                   "0",         "1e999",
                                                   "nan",       "inf",
                                                   "true",      "seed: 1",
                                                   "replay {",  "\n",
                                                   "'",         "/",
                                                   "\0"s,       "\xff",
                                                   "[a.b/c.d]", ";",
                                                   ",",         "0x7fffffffffffffff"};
  return troupe::mutated(std::move(text), random, kTokens);
}

} // namespace troupe
