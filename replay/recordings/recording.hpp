#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replay/recordings/episode.hpp"
#include "replay/storage/checkpoint_writer.hpp"

namespace troupe::replay {

/// Throws std::invalid_argument naming `folder` and the difference if an experiment's transitions
/// are of other steps.
void check_fits(const RecordingSpec& recording, const TransitionSpec& transitions,
                const std::filesystem::path& folder);

/// What a recording says of an episode without reading it.
struct EpisodeSummary {
  std::int64_t steps = 0;
  double total_reward = 0;
  bool terminated = false; // false: it was cut

  bool operator==(const EpisodeSummary&) const = default;
};

/// Writes a recording: a folder that appears, complete, with commit(). Until then its files are in
/// `<folder>.partial`, which the next writer of the same folder removes. Columns are compressed;
/// every file has checksums. Throws StorageError.
class RecordingWriter {
public:
  /// `folder` must not exist; its parent must.
  RecordingWriter(std::filesystem::path folder, RecordingSpec spec);

  void add(const Episode& episode); // of at least one step
  std::int64_t episodes() const { return std::ssize(summaries_); }
  void commit();

private:
  RecordingSpec spec_;
  CheckpointWriter writer_;
  ChunkEncoder encoder_{Compression::automatic};
  std::vector<EpisodeSummary> summaries_;
};

/// Reads a recording as untrusted input. Const functions are thread-safe. Throws StorageError
/// naming the file, std::invalid_argument if there is none.
class Recording {
public:
  explicit Recording(const std::filesystem::path& folder);

  const RecordingSpec& spec() const { return spec_; }
  std::span<const EpisodeSummary> episodes() const { return summaries_; }
  std::int64_t steps() const { return steps_; } // of all episodes
  /// Items that these transitions make of episode `i`.
  static std::int64_t items(const TransitionSpec& transitions, const EpisodeSummary& episode);

  Episode read(std::size_t i) const;
  /// Reads and checks everything.
  void verify() const;

private:
  std::filesystem::path folder_;
  CheckpointReader reader_;
  RecordingSpec spec_;
  std::vector<EpisodeSummary> summaries_;
  std::int64_t steps_ = 0;
};

/// Whether the folder holds a recording, not a table or something else. Never throws.
bool is_recording(const std::filesystem::path& folder);

/// Parses the header of a recording's manifest; for Recording and the fuzzer.
std::pair<RecordingSpec, std::vector<EpisodeSummary>>
parse_recording_header(std::span<const std::byte> header, const std::string& source);

} // namespace troupe::replay
