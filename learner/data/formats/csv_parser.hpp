#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <string>
#include <vector>

namespace troupe::learner::data {

/// Parses the records of a CSV text (RFC 4180). Quoted fields may contain separators, line ends and
/// doubled quotes. Lines end with LF or CRLF; empty lines are skipped. One thread.
class CsvParser {
public:
  static constexpr std::size_t kMostFieldBytes = 1 << 20;
  static constexpr std::size_t kMostFields = 1 << 20;

  CsvParser(std::istream& in, std::string source, char separator);

  /// Returns false at the end. Throws DataError naming source and line if a quote is never closed,
  /// or if a field or record is too long.
  bool next(std::vector<std::string>& fields);
  std::int64_t line() const { return line_; } // the line on which the record began, from 1

private:
  enum class Ends : std::uint8_t { field, record, file };
  Ends field(std::string& out);
  Ends quoted(std::string& out);
  [[noreturn]] void fail(const std::string& what) const;

  std::istream& in_;
  std::string source_;
  char separator_;
  std::int64_t line_ = 0;
  std::int64_t next_line_ = 1;
};

} // namespace troupe::learner::data
