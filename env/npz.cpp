#include "env/npz.hpp"

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace troupe::env {

namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void fail(const std::string& source, const std::string& what) {
  throw std::runtime_error(source + " is not an .npz archive we can read: " + what);
}

/// Little-endian number of `size` bytes at `offset`; fails when the bytes end before.
std::uint64_t number(Bytes bytes, std::size_t offset, std::size_t size, const std::string& source) {
  if (offset > bytes.size() || bytes.size() - offset < size)
    fail(source, "it ends too early (truncated?)");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= static_cast<std::uint64_t>(bytes[offset + i]) << (8 * i);
  return value;
}

Bytes slice(Bytes bytes, std::size_t offset, std::size_t size, const std::string& source) {
  if (offset > bytes.size() || bytes.size() - offset < size)
    fail(source, "a part of it lies outside the file (truncated?)");
  return bytes.subspan(offset, size);
}

/// One entry of the central directory of a zip file.
struct Entry {
  std::string name;
  unsigned flags = 0;
  unsigned method = 0; // 0 stored, 8 deflated
  std::uint32_t checksum = 0;
  std::size_t packed = 0;
  std::size_t unpacked = 0;
  std::size_t offset = 0; // of the local header
};

constexpr std::size_t kEndRecord = 22;
constexpr std::size_t kDirectoryRecord = 46;
constexpr std::size_t kLocalRecord = 30;

/// The end record is the last one, before a comment of at most 65535 bytes.
std::size_t find_end_record(Bytes file, const std::string& source) {
  if (file.size() < kEndRecord)
    fail(source, "it is too short for a zip file");
  const std::size_t last = file.size() - kEndRecord;
  for (std::size_t back = 0; back <= last && back <= 65535; ++back)
    if (number(file, last - back, 4, source) == 0x06054b50
        && number(file, last - back + 20, 2, source) == back)
      return last - back;
  fail(source, "it has no zip directory (truncated?)");
}

Entry read_entry(Bytes directory, std::size_t at, const std::string& source) {
  if (number(directory, at, 4, source) != 0x02014b50)
    fail(source, "its directory is damaged");
  const auto field = [&](std::size_t offset, std::size_t size) {
    return number(directory, at + offset, size, source);
  };
  Entry entry;
  entry.flags = static_cast<unsigned>(field(8, 2));
  entry.method = static_cast<unsigned>(field(10, 2));
  entry.checksum = static_cast<std::uint32_t>(field(16, 4));
  entry.packed = field(20, 4);
  entry.unpacked = field(24, 4);
  entry.offset = field(42, 4);
  const Bytes name = slice(directory, at + kDirectoryRecord, field(28, 2), source);
  entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  if (entry.packed == 0xffffffff || entry.unpacked == 0xffffffff || entry.offset == 0xffffffff)
    fail(source, "zip64 archives are not read");
  if ((entry.flags & 1) != 0)
    fail(source, "it is encrypted");
  if (entry.method != 0 && entry.method != 8)
    fail(source, "'" + entry.name + "' is packed by method " + std::to_string(entry.method)
                     + "; only stored (0) and deflated (8) are read");
  return entry;
}

std::vector<std::byte> inflate_all(Bytes packed, std::size_t size, const std::string& source) {
  std::vector<std::byte> out(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    throw std::runtime_error("zlib could not start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::byte none{};
  stream.next_out = reinterpret_cast<Bytef*>(size > 0 ? out.data() : &none);
  stream.avail_out = static_cast<uInt>(size);
  const int result = inflate(&stream, Z_FINISH);
  const bool complete = result == Z_STREAM_END && stream.total_out == size;
  inflateEnd(&stream);
  if (!complete)
    fail(source, "its deflated bytes are damaged");
  return out;
}

std::vector<std::byte> unpack(Bytes file, const Entry& entry, const std::string& source) {
  if (number(file, entry.offset, 4, source) != 0x04034b50)
    fail(source, "'" + entry.name + "' has no local header");
  const std::size_t name = number(file, entry.offset + 26, 2, source);
  const std::size_t extra = number(file, entry.offset + 28, 2, source);
  const Bytes packed =
      slice(file, entry.offset + kLocalRecord + name + extra, entry.packed, source);
  std::vector<std::byte> bytes;
  if (entry.method == 0) {
    if (entry.packed != entry.unpacked)
      fail(source, "'" + entry.name + "' has two sizes");
    bytes.assign(packed.begin(), packed.end());
  } else {
    if (entry.unpacked / 1100 > entry.packed) // deflate packs at most 1032 to 1
      fail(source, "'" + entry.name + "' claims an impossible size");
    bytes = inflate_all(packed, entry.unpacked, source);
  }
  const auto checksum =
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  if (checksum != entry.checksum)
    fail(source, "'" + entry.name + "' has a wrong checksum");
  return bytes;
}

} // namespace

std::map<std::string, NpyArray> parse_npz(Bytes file, const std::string& source,
                                          const NpzLimits& limits) {
  if (file.size() > limits.file_bytes)
    fail(source, "it has " + std::to_string(file.size()) + " bytes; at most "
                     + std::to_string(limits.file_bytes) + " are read");
  const std::size_t end = find_end_record(file, source);
  const std::size_t count = number(file, end + 10, 2, source);
  const Bytes directory =
      slice(file, number(file, end + 16, 4, source), number(file, end + 12, 4, source), source);
  if (count > limits.arrays)
    fail(source, "it has " + std::to_string(count) + " arrays");
  std::map<std::string, NpyArray> arrays;
  std::size_t total = 0;
  for (std::size_t i = 0, at = 0; i < count; ++i) {
    const Entry entry = read_entry(directory, at, source);
    at += kDirectoryRecord + number(directory, at + 28, 2, source)
          + number(directory, at + 30, 2, source) + number(directory, at + 32, 2, source);
    total += entry.unpacked;
    if (entry.unpacked > limits.array_bytes || total > limits.total_bytes)
      fail(source, "'" + entry.name + "' is too large");
    if (!entry.name.ends_with(".npy"))
      fail(source, "'" + entry.name + "' is not an array (.npy)");
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    if (!arrays.emplace(name, parse_npy(unpack(file, entry, source), source + ":" + name)).second)
      fail(source, "'" + name + "' is there twice");
  }
  return arrays;
}

std::map<std::string, NpyArray> read_npz(const std::string& path, const NpzLimits& limits) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in)
    throw std::runtime_error(path + " cannot be read: "
                             + (error ? error.message() : std::string("not allowed to open it")));
  if (size > limits.file_bytes)
    fail(path, "it has " + std::to_string(size) + " bytes; at most "
                   + std::to_string(limits.file_bytes) + " are read");
  std::vector<std::byte> bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::size_t>(in.gcount()) != size)
    throw std::runtime_error(path + " cannot be read to its end");
  return parse_npz(bytes, path, limits);
}

} // namespace troupe::env
