#include <algorithm>
#include <numeric>

#include "env/nearest_names.hpp"

namespace troupe::env {

namespace {

/// Levenshtein distance: insertions, deletions and replacements.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

} // namespace

std::vector<std::string> nearest_names(const std::string& name,
                                       const std::vector<std::string>& names, std::size_t count) {
  const std::string head = name.substr(0, 256); // a name from outside may have any length
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& other : names)
    if (!other.empty())
      ranked.emplace_back(edit_distance(head, other), other);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (auto& [distance, other] : ranked)
    if (nearest.size() < count && distance <= ranked.front().first + 1)
      nearest.push_back(std::move(other));
  return nearest;
}

} // namespace troupe::env
