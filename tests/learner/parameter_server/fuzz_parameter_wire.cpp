// libFuzzer target of the headers that a parameter server and its clients receive.
#include <cstddef>
#include <cstdint>
#include <string>

#include "learner/parameter_server/parameter_wire.hpp"
#include "tests/fuzz_seeds.hpp"

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

std::vector<std::string> troupe::fuzz_seeds() {
  const wire::Slice slice =
      encode({.recipe = {.name = "Adam", .groups = {{{"lr", 1e-3}, {"beta1", 0.9}}}},
              .segments = {{.parameter = 0, .group = 0, .begin = 0, .count = 12},
                           {.parameter = 1, .group = 0, .begin = 4, .count = 4}}});
  wire::Envelope join;
  join.set_protocol(kParameterProtocol);
  join.set_number(1);
  join.set_session(42);
  wire::Envelope push = join, beat = join;
  *join.mutable_join()->mutable_slice() = slice;
  join.mutable_join()->set_can_begin(true);
  push.set_step(3);
  push.mutable_exchange()->mutable_push()->add_learning_rates(1e-3);
  push.mutable_exchange()->mutable_push()->set_present("\1\1");
  beat.mutable_beat();
  return {slice.SerializeAsString(), join.SerializeAsString(), push.SerializeAsString(),
          beat.SerializeAsString()};
}

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
