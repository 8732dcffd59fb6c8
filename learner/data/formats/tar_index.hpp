#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {

/// A regular file in a tar archive.
struct TarEntry {
  std::string name;
  std::uint64_t offset = 0; // of its bytes
  std::uint64_t size = 0;   // bytes
};

/// What a tar archive has (ustar, GNU, pax, long names; not compressed, so that its files can be
/// read anywhere), by reading the headers alone. Throws DataError naming the archive and the byte
/// where it is damaged or ends too early.
std::vector<TarEntry> index_tar(const File& file);

} // namespace troupe::learner::data
