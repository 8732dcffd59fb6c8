#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/protocol/run_config.hpp"
#include "env/appended_file.hpp"

namespace troupe::experiments {

/// metrics.csv (RFC 4180, lines end with CR LF): one row per progress report and per evaluation. A
/// file keeps the columns that it was created with; a missing or non-finite value is an empty
/// field. metrics.jsonl beside it has one JSON object per row, without the missing values; it also
/// has the values for which an older metrics.csv has no column. While the disk is full, rows wait
/// in memory. Use from one thread. Throws std::runtime_error with path and reason if a file cannot
/// be opened, or if an existing metrics.csv is damaged or has columns that are not in
/// `its_columns`.
class MetricsFile {
public:
  /// Appends to existing files; metrics.csv may have fewer columns in a different order. Removes
  /// incomplete last rows.
  MetricsFile(const std::filesystem::path& path, std::vector<std::string> its_columns);

  void progress(const actors::Progress& progress);
  void evaluation(const actors::Evaluated& evaluated);

  /// A log message about the columns that an existing file of an earlier version lacks; empty if it
  /// lacks none.
  std::string left_out() const;

  env::AppendedFile& file() { return *file_; }   // metrics.csv
  env::AppendedFile& lines() { return *lines_; } // metrics.jsonl

  /// The columns for a run in an environment, including the columns `of_learner`, which its agent's
  /// learner fills.
  static std::vector<std::string> columns(const std::vector<std::string>& of_learner);

private:
  void take_columns(std::vector<std::string> of_file);
  void write(const std::map<std::string, std::string>& values);
  std::filesystem::path path_;
  std::vector<std::string> columns_, left_out_;
  std::optional<env::AppendedFile> file_, lines_;
};

/// Formats one record of RFC 4180 with its CR LF. Fields are quoted where necessary.
std::string csv_record(const std::vector<std::string>& fields);

/// Called with the fields of one record, which are valid only during the call.
using CsvRecord = std::function<void(const std::vector<std::string_view>& fields)>;

/// Calls `record` for each complete record in a CSV file, or in a part of one that begins with a
/// record. Returns the total length of these records in bytes.
std::size_t scan_csv(std::string_view text, const CsvRecord& record);

/// All complete records of a CSV file. Throws std::runtime_error if a quote is never closed.
std::vector<std::vector<std::string>> read_csv(const std::string& text);

/// Formats a number in the shortest form that reads back as an equal number; empty if it is not
/// finite.
std::string csv_number(double value);

} // namespace troupe::experiments
