// libFuzzer target of the answers of object stores.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "replay/objects/key_answers.hpp"
#include "replay/objects/object_address.hpp"
#include "replay/objects/store_answers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::replay;
  constexpr int kMostKeys = 3;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const ListingPage page = parse_listing(text, kMostKeys);
    if (page.objects.size() + page.prefixes.size() > kMostKeys)
      std::abort();
    for (const StoredObject& object : page.objects)
      if (object.bytes < 0 || object.key.empty())
        std::abort();
  } catch (const std::runtime_error&) {
  }
  try {
    if (parse_upload_id(text).empty())
      std::abort();
  } catch (const std::runtime_error&) {
  }
  for (StoreKeys (*parse)(const std::string&) : {parse_assumed_role, parse_key_document})
    try {
      const StoreKeys keys = parse(text);
      if (!is_secret(keys.access_key) || !is_secret(keys.secret_key))
        std::abort();
    } catch (const std::runtime_error&) {
    }
  if (parse_error_code(text).size() > 64)
    std::abort();
  return 0;
}
