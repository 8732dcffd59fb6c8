#include "learner/data/formats/csv_parser.hpp"

#include <utility>

#include "learner/data/pictures/data_error.hpp"

namespace troupe::learner::data {

CsvParser::CsvParser(std::istream& in, std::string source, char separator)
    : in_(in), source_(std::move(source)), separator_(separator) {}

void CsvParser::fail(const std::string& what) const {
  throw DataError(source_ + ":" + std::to_string(line_) + ": " + what);
}

bool CsvParser::next(std::vector<std::string>& fields) {
  constexpr int kEnd = std::char_traits<char>::eof();
  fields.clear();
  for (int c = in_.peek(); c == '\n' || c == '\r'; c = in_.peek())
    next_line_ += in_.get() == '\n' ? 1 : 0;
  if (in_.peek() == kEnd)
    return false;
  line_ = next_line_;
  while (true) {
    if (fields.size() == kMostFields)
      fail("has more than " + std::to_string(kMostFields) + " fields");
    fields.emplace_back();
    if (field(fields.back()) != Ends::field)
      return true;
  }
}

CsvParser::Ends CsvParser::field(std::string& out) {
  constexpr int kEnd = std::char_traits<char>::eof();
  if (in_.peek() == '"') {
    in_.get();
    return quoted(out);
  }
  while (true) {
    const int c = in_.get();
    if (c == kEnd)
      return Ends::file;
    if (c == separator_)
      return Ends::field;
    if (c == '\n') {
      ++next_line_;
      if (!out.empty() && out.back() == '\r')
        out.pop_back();
      return Ends::record;
    }
    if (out.size() == kMostFieldBytes)
      fail("has a field of more than " + std::to_string(kMostFieldBytes) + " bytes");
    out.push_back(static_cast<char>(c));
  }
}

/// Parses the rest of a quoted field, after the opening quote.
CsvParser::Ends CsvParser::quoted(std::string& out) {
  constexpr int kEnd = std::char_traits<char>::eof();
  while (true) {
    const int c = in_.get();
    if (c == kEnd)
      fail("has a quote that is never closed");
    if (c == '"' && in_.peek() != '"')
      break;
    if (c == '"')
      in_.get(); // a doubled quote
    next_line_ += c == '\n' ? 1 : 0;
    if (out.size() == kMostFieldBytes)
      fail("has a field of more than " + std::to_string(kMostFieldBytes)
           + " bytes (a quote that is never closed?)");
    out.push_back(static_cast<char>(c));
  }
  int c = in_.get();
  if (c == '\r' && in_.peek() == '\n')
    c = in_.get();
  if (c == kEnd)
    return Ends::file;
  if (c == separator_)
    return Ends::field;
  if (c != '\n')
    fail("has \"" + std::string(1, static_cast<char>(c)) + "\" after a closing quote");
  ++next_line_;
  return Ends::record;
}

} // namespace troupe::learner::data
