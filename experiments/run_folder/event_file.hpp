#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "experiments/run_folder/clock.hpp"
#include "learner/histogram.hpp"

namespace troupe::experiments {

/// A TensorBoard event file: scalars and histograms by tag and step. Records are TFRecords: length,
/// its masked CRC-32C, bytes, their masked CRC-32C. One thread. Throws std::runtime_error naming
/// path and reason.
class EventFile {
public:
  /// Makes <folder>/events.out.tfevents.<seconds>.troupe, with a number behind it when it exists.
  EventFile(const std::filesystem::path& folder, UtcTime now);

  /// Values that are not finite are left out.
  void scalars(UtcTime now, std::int64_t step, const std::map<std::string, double>& values);

  /// Empty ones are left out.
  void histograms(UtcTime now, std::int64_t step,
                  const std::map<std::string, learner::Histogram>& values);

  const std::filesystem::path& path() const { return path_; }

private:
  void write(const std::string& record);
  std::filesystem::path path_;
  std::ofstream out_;
};

/// CRC-32C (Castagnoli) of the bytes, as in RFC 3720; and as TFRecords store it.
std::uint32_t crc32c(const void* bytes, std::size_t count);
std::uint32_t masked_crc32c(const void* bytes, std::size_t count);

} // namespace troupe::experiments
