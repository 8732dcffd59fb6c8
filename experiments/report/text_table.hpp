#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace troupe::experiments {

using TextRow = std::vector<std::string>;

/// A number in a format of printf; "-" if it is not finite.
inline std::string shown_number(double value, const char* format = "%.1f") {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return std::isfinite(value) ? text : "-";
}

/// One line per row; each column is as wide as its widest cell. The cells of the columns from
/// `first_right` to before `end_right` are aligned to the right, the others to the left.
inline std::string text_table(const std::vector<TextRow>& rows, std::size_t first_right = 0,
                              std::size_t end_right = 0) {
  std::vector<std::size_t> widths;
  for (const TextRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const TextRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      const bool right = i >= first_right && i < end_right;
      line += (i == 0 ? "" : "  ") + (right ? space + row[i] : row[i] + space);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return out;
}

} // namespace troupe::experiments
