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

/// metrics.csv (RFC 4180, lines end with CR LF): one row per progress report and per evaluation.
/// A file keeps the columns that it was created with; a value that is missing or not finite is an
/// empty field. One thread. Throws std::runtime_error naming path and reason when it cannot be
/// opened, or when an existing file is damaged or has columns that are not
/// `its_columns`. Rows wait in memory while the disk is full.
class MetricsFile {
public:
  /// Appends to an existing file, whose columns may be fewer and in another order; drops an
  /// incomplete last row.
  MetricsFile(const std::filesystem::path& path, std::vector<std::string> its_columns);

  void progress(const actors::Progress& progress);
  void evaluation(const actors::Evaluated& evaluated);

  /// Columns that an existing file of an earlier version does not have; text for a log, or empty.
  std::string left_out() const;

  env::AppendedFile& file() { return *file_; }

  /// Of a run in an environment, and the ones that its agent's learner fills.
  static std::vector<std::string> columns(const std::vector<std::string>& of_learner);

private:
  void take_columns(std::vector<std::string> of_file);
  void write(const std::map<std::string, std::string>& values);
  std::filesystem::path path_;
  std::vector<std::string> columns_, left_out_;
  std::optional<env::AppendedFile> file_;
};

/// One record of RFC 4180, with its CR LF; fields are quoted where they need it.
std::string csv_record(const std::vector<std::string>& fields);

/// Gets the fields of one record, which are valid during the call.
using CsvRecord = std::function<void(const std::vector<std::string_view>& fields)>;

/// Gives each complete record of such a file, or of a part that begins with a record, to `record`;
/// returns their length in bytes.
std::size_t scan_csv(std::string_view text, const CsvRecord& record);

/// All complete records of such a file. Throws std::runtime_error on a quote that never closes.
std::vector<std::vector<std::string>> read_csv(const std::string& text);

/// A number for a file: shortest form that reads back equal; empty when not finite.
std::string csv_number(double value);

} // namespace troupe::experiments
