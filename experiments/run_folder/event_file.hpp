#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>

#include "env/appended_file.hpp"
#include "experiments/run_folder/clock.hpp"
#include "learner/histogram.hpp"

namespace troupe::experiments {

class Event;
class EventHparams;

/// Values of an experiment's keys by their dotted names: "replay.n_step".
using Settings = std::map<std::string, std::variant<bool, double, std::string>>;

/// A picture as PNG, or an animated one as GIF. Width and height in pixels.
struct EncodedPicture {
  int width = 0;
  int height = 0;
  std::string bytes = {};
};

/// A TensorBoard event file: scalars, histograms and pictures by tag and step, and the settings of
/// the run. Records are TFRecords: length, its masked CRC-32C, bytes, their masked CRC-32C. One
/// thread. They wait in memory while the disk is full.
class EventFile {
public:
  /// Makes <folder>/events.out.tfevents.<seconds>.troupe, with a number behind it when it exists.
  /// Throws std::runtime_error naming path and reason if it cannot be opened.
  EventFile(const std::filesystem::path& folder, UtcTime now);

  /// Values that are not finite are left out.
  void scalars(UtcTime now, std::int64_t step, const std::map<std::string, double>& values);

  /// Empty ones are left out.
  void histograms(UtcTime now, std::int64_t step,
                  const std::map<std::string, learner::Histogram>& values);

  void picture(UtcTime now, std::int64_t step, const std::string& tag,
               const EncodedPicture& picture);

  /// Hyper-parameters, and whether the run reached its end. TensorBoard takes the first of each in
  /// a folder. The metrics beside them are the scalars of all runs: a list of one run's own would
  /// hide those of other experiments.
  void started(UtcTime now, const Settings& settings);
  void ended(UtcTime now, bool success);

  env::AppendedFile& file() { return file_; }

private:
  void write(const Event& event);
  void write_hparams(UtcTime now, const std::string& tag, const EventHparams& content);
  env::AppendedFile file_;
};

/// CRC-32C (Castagnoli) of the bytes, as in RFC 3720; and as TFRecords store it.
std::uint32_t crc32c(const void* bytes, std::size_t count);
std::uint32_t masked_crc32c(const void* bytes, std::size_t count);

} // namespace troupe::experiments
