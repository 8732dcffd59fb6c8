// libFuzzer target of the frames that ranks exchange over the control mesh. An input is what one
// peer sends, and may contain any number of frames.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/mesh/control_frame.hpp"
#include "tests/fuzz_seeds.hpp"

namespace {

using namespace troupe::collectives;

std::span<const std::byte> bytes_of(const Fingerprint& fingerprint) {
  return std::as_bytes(std::span(&fingerprint, 1));
}

void check_frame(const ControlFrame& frame, std::span<const std::byte> received) {
  const bool call = frame.kind == FrameKind::fingerprint;
  const auto content = call ? bytes_of(frame.fingerprint) : std::span<const std::byte>();
  const auto again = encode_frame(frame.kind, content, frame.rest);
  if (frame.bytes > received.size() || again.size() != frame.bytes
      || !std::equal(again.begin(), again.end(), received.begin()))
    __builtin_trap();
  if (call) {
    const Fingerprint calls[] = {{}, frame.fingerprint};
    if (describe_mismatch(calls).empty() != (calls[0] == calls[1]))
      __builtin_trap();
    describe(frame.fingerprint, true);
    call_name(frame.fingerprint);
  }
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  const Fingerprint call{.sequence = 3,
                         .kind = Kind::all_reduce,
                         .op = 0,
                         .type = 6,
                         .dimensions = 2,
                         .shape = {3, 4}};
  const std::string text = "the disk is full";
  const auto reason = std::as_bytes(std::span(text));
  std::string all;
  std::vector<std::string> seeds;
  for (const auto& frame :
       {encode_frame(FrameKind::fingerprint, bytes_of(call), {}),
        encode_frame(FrameKind::fingerprint, bytes_of(call), reason),
        encode_frame(FrameKind::data_failed, {}, {}), encode_frame(FrameKind::abort, reason, {})})
    all += seeds.emplace_back(reinterpret_cast<const char*>(frame.data()), frame.size());
  seeds.push_back(all);
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto received = std::as_bytes(std::span(data, size));
  try {
    while (const auto frame = first_frame(received)) {
      check_frame(*frame, received);
      received = received.subspan(frame->bytes);
    }
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
