#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "env/text/number_in.hpp"
#include "experiments/launchers/slurm.hpp"

namespace troupe::experiments::launchers {
namespace {

constexpr std::size_t kMostNames = 65'536;

[[noreturn]] void bad_list(std::string_view list) {
  throw std::invalid_argument(
      std::string("the node list is \"") + std::string(list.substr(0, 200))
      + "\"; it must be as Slurm writes it, gpu1,node[01-03,7], of at most 65536 nodes");
}

long number(std::string_view digits, std::string_view list) {
  const auto value = env::number_in<long>(digits);
  if (!value || *value < 0)
    bad_list(list);
  return *value;
}

/// "01-03,7" -> 01, 02, 03, 7
std::vector<std::string> expand_range(std::string_view ranges, std::string_view list) {
  std::vector<std::string> result;
  while (true) {
    const std::size_t comma = std::min(ranges.find(','), ranges.size());
    const std::string_view range = ranges.substr(0, comma);
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const long begin = number(first, list);
    const long end = dash == std::string_view::npos ? begin : number(range.substr(dash + 1), list);
    if (end < begin || static_cast<std::size_t>(end - begin) >= kMostNames - result.size())
      bad_list(list);
    for (long i = begin; i <= end; ++i) {
      std::string digits = std::to_string(i);
      if (digits.size() < first.size())
        digits.insert(0, first.size() - digits.size(), '0');
      result.push_back(std::move(digits));
    }
    if (comma == ranges.size())
      return result;
    ranges.remove_prefix(comma + 1);
  }
}

/// Expands one name with any number of brackets.
std::vector<std::string> expand_name(std::string_view name, std::string_view list) {
  const std::size_t open = name.find('[');
  if (open == std::string_view::npos) {
    if (name.empty() || name.find(']') != std::string_view::npos)
      bad_list(list);
    return {std::string(name)};
  }
  const std::size_t close = name.find(']', open);
  if (close == std::string_view::npos)
    bad_list(list);
  const auto middles = expand_range(name.substr(open + 1, close - open - 1), list);
  const auto rest = name.substr(close + 1);
  const auto tails = rest.empty() ? std::vector<std::string>{""} : expand_name(rest, list);
  if (middles.size() * tails.size() > kMostNames)
    bad_list(list);
  std::vector<std::string> result;
  for (const std::string& middle : middles)
    for (const std::string& tail : tails)
      result.push_back(std::string(name.substr(0, open)) + middle + tail);
  return result;
}

} // namespace

std::vector<std::string> parse_node_list(std::string_view list) {
  std::vector<std::string> result;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[')
      ++depth;
    if (i < list.size() && list[i] == ']')
      --depth;
    if (depth < 0 || depth > 1)
      bad_list(list);
    if (i < list.size() && (list[i] != ',' || depth > 0))
      continue;
    const auto names = expand_name(list.substr(begin, i - begin), list);
    if (result.size() + names.size() > kMostNames)
      bad_list(list);
    result.insert(result.end(), names.begin(), names.end());
    begin = i + 1;
  }
  return result;
}

std::optional<std::vector<std::string>> allocated_nodes() {
  const char* job = std::getenv("SLURM_JOB_ID");
  const char* list = std::getenv("SLURM_JOB_NODELIST");
  if (job == nullptr || *job == '\0' || list == nullptr)
    return std::nullopt;
  return parse_node_list(list);
}

} // namespace troupe::experiments::launchers
