// libFuzzer target of what peers' sockets say to each other and of endpoints: clang++ -std=c++20
// -fsanitize=fuzzer,address -I. tests/env/wire/fuzz_wire.cpp
// env/wire/{control,deployment_keys,keys}.cpp -lzmq. The first byte chooses the decoder.
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "env/wire/control.hpp"
#include "env/wire/deployment_keys.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::env::wire;
  if (size == 0)
    return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    const auto decoded = decode_control(std::as_bytes(std::span(text)));
    // What is taken says no more than its bytes.
    if (decoded && decoded->references.size() * sizeof(Reference) > text.size())
      __builtin_trap();
    return 0;
  }
  try {
    const std::string endpoint = "tcp://" + text;
    const auto parts = split_endpoint(endpoint);
    if (!parts.server_key.empty() && with_server_key(parts.address, parts.server_key) != endpoint)
      __builtin_trap();
    is_loopback(endpoint);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
