#include <doctest/doctest.h>

#include <string>

#include "env/legible.hpp"

using troupe::env::legible;
using troupe::env::legible_line;

TEST_CASE("Text without control characters is unchanged") {
  for (const std::string text : {"", "plain", "tab\tand\nnewline", "é ß 漢 🎭 \u00a0", "\\x1b"})
    CHECK(legible(text) == text);
}

TEST_CASE("Control characters, which a terminal would obey, are escaped") {
  CHECK(legible("a\x1b]0;owned\ab") == "a\\x1b]0;owned\\x07b");
  CHECK(legible("\x1b[2J\r") == "\\x1b[2J\\x0d");
  CHECK(legible(std::string("zero\0", 5)) == "zero\\x00");
  CHECK(legible("\x7f") == "\\x7f");
  CHECK(legible("\xc2\x9b") == "\\xc2\\x9b"); // U+009B, which starts a control sequence
}

TEST_CASE("legible_line also escapes newlines") {
  CHECK(legible_line("a\tb\nc\x1b") == "a\tb\\x0ac\\x1b");
}

TEST_CASE("Bytes that are not UTF-8 are escaped, and the text continues") {
  CHECK(legible("x\xff:y") == "x\\xff:y");
  CHECK(legible("\xc3") == "\\xc3");                       // truncated
  CHECK(legible("\xc0\xaf") == "\\xc0\\xaf");              // overlong
  CHECK(legible("\xed\xa0\x80") == "\\xed\\xa0\\x80");     // a surrogate
  CHECK(legible("\xf4\x90\x80\x80").starts_with("\\xf4")); // above U+10FFFF
  CHECK(legible("\xe6\xbc\xa2\xe6\xbc") == "漢\\xe6\\xbc");
}
