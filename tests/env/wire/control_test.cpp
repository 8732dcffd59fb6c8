#include "env/wire/control.hpp"

#include <doctest/doctest.h>

namespace troupe::env::wire {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Control three_frames() {
  return {.token = make_token(),
          .sequence = 77,
          .references = {{.place = 0, .slot = 5, .generation = 9, .offset = 3, .size = 1000},
                         {.place = 2, .slot = 4, .generation = 1, .offset = 0, .size = 1},
                         {.place = 9, .slot = 4095, .generation = 2, .offset = 70, .size = 64}}};
}

TEST_CASE("Control parts of each kind are unchanged after encoding and decoding") {
  const Control frames = three_frames();
  const auto got = decode_control(bytes_of(encode(frames)));
  REQUIRE(got);
  CHECK(got->kind == Control::Kind::frames);
  CHECK(got->token == frames.token);
  CHECK_EQ(got->sequence, 77);
  REQUIRE_EQ(got->references.size(), 3);
  CHECK_EQ(got->references[2].slot, 4095);
  CHECK_EQ(got->references[2].offset, 70);
  const auto offer = decode_control(bytes_of(
      encode({.kind = Control::Kind::offer, .token = frames.token, .address = "troupe-name"})));
  REQUIRE(offer);
  CHECK_EQ(offer->address, "troupe-name");
  const auto hello =
      decode_control(bytes_of(encode({.kind = Control::Kind::hello, .token = frames.token})));
  REQUIRE(hello);
  CHECK(hello->kind == Control::Kind::hello);
}

TEST_CASE("A Protobuf header is never taken for a control part, and tokens differ") {
  CHECK_FALSE(is_control(std::string_view("")));
  CHECK_FALSE(is_control(std::string_view("\x08\x01\x12\x03xyz")));
  CHECK(is_control(std::string_view(encode(Control{}))));
  CHECK(make_token() != make_token());
}

TEST_CASE(
    "A control part with another version, unordered places or too many references is refused") {
  std::string text = encode(three_frames());
  text[8] = 2; // version
  CHECK(is_control(text));
  CHECK_FALSE(decode_control(bytes_of(text)));
  Control control = three_frames();
  control.references[2].place = 2;
  CHECK_FALSE(decode_control(bytes_of(encode(control))));
  control.references.assign(kMostReferences + 1, {});
  CHECK_FALSE(decode_control(bytes_of(encode(control))));
}

} // namespace
} // namespace troupe::env::wire
