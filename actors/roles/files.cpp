#include "actors/roles/files.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>

#include "env/text/number_in.hpp"
#include "env/whole_file.hpp"
#include "replay/storage/segment_file.hpp"

namespace troupe::actors {

namespace {

constexpr std::size_t kGreatest = std::size_t{1} << 32; // bytes, far more than actors write

} // namespace

std::int64_t number_of(const std::string& name) {
  const auto number = env::number_in<std::uint64_t>(name, 0, 999'999'999'999'999'999);
  return number ? static_cast<std::int64_t>(*number) : -1;
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  env::WholeFileWriter file(path);
  const std::uint64_t sum = replay::checksum_of(bytes);
  file.write(bytes.data(), bytes.size());
  file.write(&sum, sizeof sum);
  file.commit();
}

namespace {

std::filesystem::path spare_of(const std::filesystem::path& path) {
  return path.string() + ".spare";
}

} // namespace

void write_reserved_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const auto spare = spare_of(path);
  const std::uint64_t sum = replay::checksum_of(bytes);
  std::vector<std::byte> whole(bytes.begin(), bytes.end());
  const auto tail = std::as_bytes(std::span(&sum, 1));
  whole.insert(whole.end(), tail.begin(), tail.end());
  std::error_code missing;
  if (std::filesystem::file_size(path, missing) == whole.size()
      && std::filesystem::file_size(spare, missing) == whole.size()) {
    env::overwrite_file(spare, whole);
    exchange(path, spare);
    return;
  }
  write_file(path, bytes);
  try {
    write_file(spare, bytes);
  } catch (const std::system_error&) {
    // The next write finds no spare and needs space on the disk.
  }
}

void remove_reserved_file(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::remove(spare_of(path), ignored);
  std::filesystem::remove(path, ignored);
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  env::FileReader file(path);
  const std::uint64_t size = file.left();
  std::uint64_t sum = 0;
  if (size < sizeof sum || size > kGreatest)
    throw std::runtime_error(path.string() + " has " + std::to_string(size)
                             + " bytes: it is truncated or belongs to another program");
  std::vector<std::byte> bytes(size - sizeof sum);
  if (!file.read(bytes.data(), bytes.size()) || !file.read(&sum, sizeof sum))
    throw std::runtime_error(path.string() + " is truncated");
  if (sum != replay::checksum_of(bytes))
    throw std::runtime_error(path.string() + " is damaged: its checksum differs");
  return bytes;
}

std::vector<std::pair<std::int64_t, std::filesystem::path>>
numbered_folders(const std::filesystem::path& folder) {
  std::vector<std::pair<std::int64_t, std::filesystem::path>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (const auto number = number_of(entry.path().filename().string()); number >= 0)
      found.emplace_back(number, entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

void exchange(const std::filesystem::path& a, const std::filesystem::path& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0)
    return;
  const std::filesystem::path between = a.string() + ".former";
  std::filesystem::rename(b, between);
  std::filesystem::rename(a, b);
  std::filesystem::rename(between, a);
}

} // namespace troupe::actors
