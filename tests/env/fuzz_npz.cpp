// libFuzzer target of the .npz reader.
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "env/npz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const troupe::env::NpzLimits limits{.array_bytes = 1 << 20, .total_bytes = 1 << 22};
  try {
    const auto arrays =
        troupe::env::parse_npz({reinterpret_cast<const std::byte*>(data), size}, "fuzz", limits);
    for (const auto& [name, array] : arrays)
      array.as_doubles();
  } catch (const std::runtime_error&) {
  }
  return 0;
}
