// libFuzzer target of the descriptions of a cluster: clang++ -std=c++20 -fsanitize=fuzzer,address
// -I. tests/collectives/fuzz_place.cpp collectives/{node_list,cluster_spec}.cpp. The first byte
// chooses the parser.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "collectives/cluster_spec.hpp"
#include "collectives/node_list.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::collectives;
  if (size == 0)
    return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    switch (data[0] % 5) {
    case 0:
      expand_node_list(text);
      break;
    case 1:
      expand_task_counts(text);
      break;
    case 2:
      parse_tf_config(text);
      break;
    case 3:
      parse_host_file(text);
      break;
    default:
      parse_endpoint(text);
    }
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
