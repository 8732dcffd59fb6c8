#pragma once
// C++ source text of an exported header.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace troupe::experiments {

inline constexpr std::int64_t kColumns = 16; // as in runtime/policy_runtime.hpp

inline std::int64_t padded(std::int64_t outputs) {
  return (outputs + kColumns - 1) / kColumns * kColumns;
}

inline std::string text(std::int64_t number) {
  return std::to_string(number);
}

/// Formats a number as a literal with exactly its value.
inline std::string literal(double number) {
  char made[64];
  std::snprintf(made, sizeof made, "%aF", static_cast<double>(static_cast<float>(number)));
  return made;
}

std::string cpp_string(const std::string& words);

/// Writes an array of numbers, several per line.
template <class Print>
void array(std::string& out, const std::string& type, const std::string& name, std::size_t count,
           const Print& print) {
  out += "alignas(64) inline constexpr " + type + " " + name + "[] = {";
  for (std::size_t i = 0; i < count; ++i) {
    out += i % 12 == 0 ? "\n    " : " ";
    out += print(i);
    out += ',';
  }
  out += "};\n";
}
void array(std::string& out, const std::string& name, const std::vector<float>& numbers);

} // namespace troupe::experiments
