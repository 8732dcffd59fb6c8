#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace troupe::env {

inline std::string golden_index_path(const std::string& folder) {
  return (std::filesystem::path(folder) / "index.json").string();
}

/// The entries of <folder>/index.json, by the names of the recordings. Throws std::runtime_error
/// naming the file if it cannot be read.
inline nlohmann::json golden_entries(const std::string& folder) {
  const std::string path = golden_index_path(folder);
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error(path
                             + " cannot be opened; name a folder of recordings made by the"
                               " programs in tests/golden/");
  try {
    return nlohmann::json::parse(in).at("tasks");
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(path + " is not an index of recordings: " + error.what());
  }
}

/// Returns what `read` returns for the entry of one recording. Throws std::runtime_error naming the
/// file and the recording if there is no such entry, or if it lacks what `read` needs.
template <class Read>
auto read_golden_entry(const std::string& folder, const std::string& recording, const Read& read) {
  try {
    return read(golden_entries(folder).at(recording));
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(golden_index_path(folder) + " does not describe the recording '"
                             + recording + "': " + error.what());
  }
}

} // namespace troupe::env
