// libFuzzer target of replay checkpoints. The first byte selects what the rest is: a manifest,
// whose checksum is corrected, or a segment.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "replay/storage/checkpoint_manifest.hpp"
#include "replay/storage/storage_error.hpp"
#include "tests/fuzz_seeds.hpp"
#include "tests/temporary_folder.hpp"

namespace {

using namespace troupe::replay;

void parse(std::vector<std::byte> bytes) {
  const std::uint64_t checksum = checksum_of(bytes);
  const auto* begin = reinterpret_cast<const std::byte*>(&checksum);
  bytes.insert(bytes.end(), begin, begin + sizeof checksum);
  if (encode(parse_manifest(bytes, "fuzz")) != bytes)
    std::abort();
}

void scan(const std::vector<std::byte>& bytes) {
  static const troupe::TemporaryFolder folder;
  const std::string path = (folder / "segment").string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  SegmentFile::open(path, 1, bytes.size())->scan([](const BlobPlace&) {});
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  const TemporaryFolder folder(kMemoryFolder);
  const std::vector<std::byte> header(5, std::byte{1}), blob(20, std::byte{2});
  CheckpointManifest manifest;
  manifest.next_segment = 2;
  manifest.header = header;
  const auto segment = SegmentFile::create(folder / "segment", 1);
  for (std::uint64_t i = 0; i < 2; ++i)
    manifest.blobs.push_back({.key = {.chunk = i, .high = 4}, .place = segment->append(blob)});
  manifest.segments = {{.id = 1, .bytes = segment->size()}};
  const auto bytes = encode(manifest);
  const std::string text(reinterpret_cast<const char*>(bytes.data()),
                         bytes.size() - sizeof(std::uint64_t)); // parse() adds the checksum
  return {std::string(1, '\0') + text, '\1' + read_text(folder / "segment")};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> bytes(begin + 1, begin + size);
  try {
    data[0] % 2 == 0 ? parse(bytes) : scan(bytes);
  } catch (const StorageError&) {
  }
  return 0;
}
