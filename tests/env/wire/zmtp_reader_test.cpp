#include "env/wire/zmtp_reader.hpp"

#include <algorithm>

#include "tests/env/wire/zmtp_peer.hpp"
#include <doctest/doctest.h>

namespace troupe::env::wire {
namespace {

using Event = ZmtpReader::Event;

struct Heard {
  std::vector<ZmtpMessage> messages;
  std::vector<std::string> commands;
  bool stranger = false;
  std::size_t most_held = 0;
};

/// Feeds the text in pieces of at most `piece` bytes.
Heard hear(ZmtpReader& reader, const std::string& text, std::size_t piece) {
  Heard heard;
  const auto note = [&](Event event) {
    heard.most_held = std::max(heard.most_held, reader.held_bytes());
    if (event == Event::message)
      heard.messages.push_back(reader.take_message());
    else if (event == Event::command)
      heard.commands.push_back(reader.command());
    heard.stranger = heard.stranger || event == Event::stranger;
  };
  for (std::size_t at = 0; at < text.size() && !heard.stranger;) {
    const std::size_t count = std::min(piece, text.size() - at);
    std::span<const std::byte> left = std::as_bytes(std::span(text)).subspan(at, count);
    at += count;
    while (!left.empty() && !heard.stranger) {
      const auto gap = reader.gap();
      if (gap.empty()) {
        note(reader.take(left));
        continue;
      }
      const std::size_t into = std::min(gap.size(), left.size());
      std::copy_n(left.begin(), into, gap.begin());
      left = left.subspan(into);
      note(reader.filled(into));
    }
  }
  return heard;
}

std::string text_of(const Frame& frame) {
  return {reinterpret_cast<const char*>(frame.bytes().data()), frame.size()};
}

TEST_CASE("Messages and commands are read, however the bytes are split") {
  const std::string large(200'000, 'l');
  const std::string text = dealer_hello() + part_of("head", true) + part_of("", true)
                           + part_of(large, false) + std::string("\x04\x07\x04PINGtt", 9)
                           + std::string("\0\1x", 3);
  for (const std::size_t piece : {1UL, 2UL, 7UL, 64UL, 4096UL, 1UL << 20}) {
    ZmtpReader reader({});
    const Heard heard = hear(reader, text, piece);
    CHECK_FALSE(heard.stranger);
    REQUIRE_EQ(heard.messages.size(), 2);
    REQUIRE_EQ(heard.messages[0].parts.size(), 3);
    CHECK_EQ(text_of(heard.messages[0].parts[0]), "head");
    CHECK_EQ(heard.messages[0].parts[1].size(), 0);
    CHECK(text_of(heard.messages[0].parts[2]) == large);
    CHECK_EQ(text_of(heard.messages[1].parts[0]), "x");
    CHECK_EQ(heard.commands, std::vector<std::string>{std::string("\4PINGtt", 7)});
  }
}

TEST_CASE("A message that exceeds the limits is discarded, and its end is reported") {
  for (const std::size_t size : {0UL, 1UL, 1000UL, 100'000UL}) {
    ZmtpReader reader({.max_part_bytes = 100'000, .max_parts = 20, .max_message_bytes = 500'000});
    REQUIRE_FALSE(hear(reader, dealer_hello(), 64).stranger);
    std::size_t most = 0;
    for (int i = 0; i < 500; ++i) {
      const Heard heard = hear(reader, part_of(std::string(size, 'x'), true), 65536);
      REQUIRE(heard.messages.empty());
      REQUIRE_FALSE(heard.stranger);
      most = std::max(most, heard.most_held);
    }
    CHECK_LE(most, 500'000);
    CHECK_EQ(reader.held_bytes(), 0);
    const Heard end = hear(reader, part_of("", false) + part_of("next", false), 64);
    REQUIRE_EQ(end.messages.size(), 2);
    CHECK(end.messages[0].cut);
    CHECK(end.messages[0].parts.empty());
    CHECK_FALSE(end.messages[1].cut);
    CHECK_EQ(text_of(end.messages[1].parts.at(0)), "next");
  }
}

TEST_CASE("Input other than ZMTP 3 without security ends the connection") {
  std::string old = dealer_hello();
  old[10] = 1;
  std::string curve = dealer_hello();
  curve.replace(12, 5, "CURVE");
  const std::string hello = dealer_hello();
  for (const std::string& text :
       {std::string(64, 'x'), old, curve,
        hello.substr(0, 64) + part_of("a message before READY", false),
        hello + std::string("\x02\x7f\xff\xff\xff\xff\xff\xff\xff", 9), // claims 2^63 - 1 bytes
        hello + std::string("\x02\xff\xff\xff\xff\xff\xff\xff\xff", 9),
        hello + std::string("\x08\0", 2),                          // an unknown flag
        hello + std::string("\x05\0", 2),                          // a command with the "more" flag
        hello + std::string("\x06\0\0\0\0\0\1\0\0", 9),            // a command of 64 KiB
        hello + part_of("x", true) + std::string("\x04\1x", 3)}) { // a command within a message
    ZmtpReader reader({});
    CHECK(hear(reader, text, 16).stranger);
    ZmtpReader at_once({});
    CHECK(hear(at_once, text, 1 << 20).stranger);
  }
}

} // namespace
} // namespace troupe::env::wire
