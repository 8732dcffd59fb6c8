// libFuzzer target of recording headers.
#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/recordings/recording.hpp"
#include "replay/storage/storage_error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    troupe::replay::parse_recording_header({reinterpret_cast<const std::byte*>(data), size},
                                           "fuzz");
  } catch (const troupe::replay::StorageError&) {
  }
  return 0;
}
