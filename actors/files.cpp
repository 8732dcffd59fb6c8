#include "actors/files.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "env/whole_file.hpp"

namespace troupe::actors {

namespace {

constexpr std::size_t kGreatest = std::size_t{1}
                                  << 32; // bytes; nothing that actors write comes near

std::uint64_t checksum(std::span<const std::byte> bytes) { // FNV-1a
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const std::byte byte : bytes)
    sum = (sum ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  return sum;
}

bool is_number(const std::string& name) {
  return !name.empty() && name.size() < 19
         && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

} // namespace

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  env::WholeFileWriter file(path);
  const std::uint64_t sum = checksum(bytes);
  file.write(bytes.data(), bytes.size());
  file.write(&sum, sizeof sum);
  file.commit();
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  env::FileReader file(path);
  const std::uint64_t size = file.left();
  std::uint64_t sum = 0;
  if (size < sizeof sum || size > kGreatest)
    throw std::runtime_error(path.string() + " has " + std::to_string(size)
                             + " bytes: it is cut short or none of ours");
  std::vector<std::byte> bytes(size - sizeof sum);
  if (!file.read(bytes.data(), bytes.size()) || !file.read(&sum, sizeof sum))
    throw std::runtime_error(path.string() + " is cut short");
  if (sum != checksum(bytes))
    throw std::runtime_error(path.string() + " is damaged: its checksum does not fit");
  return bytes;
}

std::vector<std::pair<std::int64_t, std::filesystem::path>>
numbered_folders(const std::filesystem::path& folder) {
  std::vector<std::pair<std::int64_t, std::filesystem::path>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (const std::string name = entry.path().filename().string(); is_number(name))
      found.emplace_back(std::stoll(name), entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

} // namespace troupe::actors
