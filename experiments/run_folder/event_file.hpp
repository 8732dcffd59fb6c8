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

/// Values of an experiment's keys by dotted names such as "replay.n_step".
using Settings = std::map<std::string, std::variant<bool, double, std::string>>;

/// A picture as PNG, or an animation as GIF. Width and height in pixels.
struct EncodedPicture {
  int width = 0;
  int height = 0;
  std::string bytes = {};
};

/// A TensorBoard event file with scalars, histograms and pictures by tag and step, and the settings
/// of the run. Records are TFRecords: length, its masked CRC-32C, bytes, their masked CRC-32C.
/// While the disk is full, records wait in memory. Use from one thread.
class EventFile {
public:
  /// Creates <folder>/events.out.tfevents.<seconds>.troupe; if that exists, a number is appended to
  /// the name. If the file cannot be opened, throws std::runtime_error with path and reason.
  EventFile(const std::filesystem::path& folder, UtcTime now);

  /// Omits values that are not finite.
  void scalars(UtcTime now, std::int64_t step, const std::map<std::string, double>& values);

  /// Omits empty histograms.
  void histograms(UtcTime now, std::int64_t step,
                  const std::map<std::string, learner::Histogram>& values);

  void picture(UtcTime now, std::int64_t step, const std::string& tag,
               const EncodedPicture& picture);

  /// started() records the hyper-parameters, and ended() whether the run reached its end.
  /// TensorBoard uses the first of each in a folder. The file lists no metrics, so that TensorBoard
  /// shows the scalars of all runs next to the hyper-parameters: a list from one run would hide the
  /// scalars of other experiments.
  void started(UtcTime now, const Settings& settings);
  void ended(UtcTime now, bool success);

  env::AppendedFile& file() { return file_; }

private:
  void write(const Event& event);
  void write_hparams(UtcTime now, const std::string& tag, const EventHparams& content);
  env::AppendedFile file_;
};

/// crc32c() is the CRC-32C (Castagnoli) of RFC 3720; masked_crc32c() is the masked form in
/// TFRecords.
std::uint32_t crc32c(const void* bytes, std::size_t count);
std::uint32_t masked_crc32c(const void* bytes, std::size_t count);

} // namespace troupe::experiments
