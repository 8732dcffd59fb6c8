#include "experiments/exporting/header_text.hpp"

namespace troupe::experiments {

std::string cpp_string(const std::string& words) {
  std::string made = "\"";
  for (const char c : words) {
    char escaped[8];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      made += std::string("\\") + c;
    else if (byte < 0x20 || c == '?') { // "??" begins a trigraph
      std::snprintf(escaped, sizeof escaped, "\\%03o", byte);
      made += escaped;
    } else
      made += c;
  }
  return made + "\"";
}

void array(std::string& out, const std::string& name, const std::vector<float>& numbers) {
  array(out, "float", name, numbers.size(), [&](std::size_t i) { return literal(numbers[i]); });
}

} // namespace troupe::experiments
