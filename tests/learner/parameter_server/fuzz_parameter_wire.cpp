// libFuzzer target of the headers that a parameter server and its clients receive.
#include <cstddef>
#include <cstdint>
#include <string>

#include "learner/parameter_server/parameter_wire.hpp"

namespace {

using namespace troupe::learner;

/// An accepted slice must encode and decode to the same slice.
void expect_again(const wire::Slice& slice) {
  std::string why;
  const auto read = decode(slice, why);
  if (!read) {
    if (why.empty())
      __builtin_trap();
    return;
  }
  const auto again = decode(encode(*read), why);
  if (!again || elements_of(again->segments) != elements_of(read->segments)
      || again->type != read->type)
    __builtin_trap();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string header(reinterpret_cast<const char*>(data), size);
  std::string why;
  if (const auto envelope = decode_envelope(header, why)) {
    if (envelope->has_join())
      expect_again(envelope->join().slice());
  } else if (why.empty()) {
    __builtin_trap();
  }
  wire::Slice slice;
  if (slice.ParseFromString(header))
    expect_again(slice);
  return 0;
}
