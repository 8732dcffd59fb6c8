#include "actors/files.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::actors {

namespace {

constexpr std::size_t kGreatest = std::size_t{1}
                                  << 32; // bytes; nothing that actors write comes near

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0)
      ::close(number);
  }
};

[[noreturn]] void complain(const std::string& what, const std::filesystem::path& path) {
  throw std::runtime_error(what + " " + path.string() + ": " + std::strerror(errno));
}

std::uint64_t checksum(std::span<const std::byte> bytes) { // FNV-1a
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const std::byte byte : bytes)
    sum = (sum ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  return sum;
}

void write_all(int descriptor, const void* data, std::size_t size,
               const std::filesystem::path& path) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor, at, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      complain("cannot write", path);
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

} // namespace

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const std::filesystem::path partial = path.string() + ".partial";
  try {
    const Descriptor file{::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (file.number < 0)
      complain("cannot create", partial);
    const std::uint64_t sum = checksum(bytes);
    write_all(file.number, bytes.data(), bytes.size(), partial);
    write_all(file.number, &sum, sizeof sum, partial);
    if (::fsync(file.number) != 0)
      complain("cannot write", partial);
    std::filesystem::rename(partial, path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw;
  }
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0)
    complain("cannot read", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size < sizeof(std::uint64_t) || size > kGreatest)
    throw std::runtime_error(path.string() + " has " + std::to_string(size)
                             + " bytes: it is cut short or none of ours");
  std::vector<std::byte> bytes(size);
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::read(file.number, bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      complain("cannot read", path);
    done += static_cast<std::size_t>(got);
  }
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + size - sizeof sum, sizeof sum);
  bytes.resize(size - sizeof sum);
  if (sum != checksum(bytes))
    throw std::runtime_error(path.string() + " is damaged: its checksum does not fit");
  return bytes;
}

} // namespace troupe::actors
