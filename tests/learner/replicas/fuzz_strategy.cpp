// libFuzzer target of the parser of strategies.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "learner/replicas/strategy_options.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::learner;
  try {
    const auto options = parse_strategy(std::string(reinterpret_cast<const char*>(data), size));
    for (const int replicas : {1, 2, 6})
      if (const auto in_sync = replicas_in_sync(options, replicas);
          in_sync < 1 || in_sync > replicas)
        __builtin_trap();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
