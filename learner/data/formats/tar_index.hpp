#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {

/// A regular file in a tar archive.
struct TarEntry {
  std::string name;
  std::uint64_t offset = 0; // of its first byte in the archive
  std::uint64_t size = 0;   // bytes
};

/// Lists the files in a tar archive (ustar, GNU, pax, long names) by reading only the headers. The
/// archive must not be compressed, so that its files can be read at any position. Throws DataError
/// naming the archive and the byte at which it is damaged or ends too early.
std::vector<TarEntry> index_tar(const File& file);

} // namespace troupe::learner::data
