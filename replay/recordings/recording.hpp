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

/// Throws std::invalid_argument naming `folder` and the difference if the steps of the recording
/// differ from the steps of an experiment's `transitions`.
void check_fits(const RecordingSpec& recording, const TransitionSpec& transitions,
                const std::filesystem::path& folder);

/// Information about an episode that is available without reading it.
struct EpisodeSummary {
  std::int64_t steps = 0;
  double total_reward = 0;
  bool terminated = false; // false: it was truncated

  bool operator==(const EpisodeSummary&) const = default;
};

/// Writes a recording. The folder appears, complete, with commit(); until then its files are in
/// `<folder>.partial`, which the next writer of the same folder removes. Columns are compressed,
/// and every file has checksums. Throws StorageError.
class RecordingWriter {
public:
  /// `folder` must not exist; its parent must.
  RecordingWriter(std::filesystem::path folder, RecordingSpec spec);

  void add(const Episode& episode); // must have at least one step
  std::int64_t episodes() const { return std::ssize(summaries_); }
  void commit();

private:
  RecordingSpec spec_;
  CheckpointWriter writer_;
  ChunkEncoder encoder_{Compression::automatic};
  std::vector<EpisodeSummary> summaries_;
};

/// Reads a recording, treating it as untrusted input. Const functions are thread-safe. Throws
/// StorageError naming the file, and std::invalid_argument if the folder has no manifest.
class Recording {
public:
  explicit Recording(const std::filesystem::path& folder);

  const RecordingSpec& spec() const { return spec_; }
  std::span<const EpisodeSummary> episodes() const { return summaries_; }
  std::int64_t steps() const { return steps_; } // in all episodes

  Episode read(std::size_t i) const;
  /// Reads and checks all episodes.
  void verify() const;

private:
  std::filesystem::path folder_;
  CheckpointReader reader_;
  RecordingSpec spec_;
  std::vector<EpisodeSummary> summaries_;
  std::int64_t steps_ = 0;
};

/// True if the folder contains a recording and not a table or something else. Never throws.
bool is_recording(const std::filesystem::path& folder);

/// Parses the header of a recording's manifest. Used by Recording and the fuzzer.
std::pair<RecordingSpec, std::vector<EpisodeSummary>>
parse_recording_header(std::span<const std::byte> header, const std::string& source);

} // namespace troupe::replay
