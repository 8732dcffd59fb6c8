#pragma once

#include <string>
#include <vector>

namespace troupe {

/// Converts the words for execve(): a pointer to each, then a null pointer. The words must outlive
/// the pointers.
inline std::vector<char*> exec_words(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words)
    pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

} // namespace troupe
