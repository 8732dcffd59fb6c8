#include "learner/data/formats/shard_names.hpp"

#include <cctype>
#include <stdexcept>

#include "env/text/number_in.hpp"

namespace troupe::learner::data {

namespace {

constexpr std::size_t kMostShards = 100'000;

} // namespace

std::optional<std::int64_t> whole_number_in(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.pop_back();
  return env::number_in<std::int64_t>(text);
}

std::vector<std::string> shard_names(const std::string& text) {
  const auto open = text.find('{'), dots = text.find("..", open), close = text.find('}', open);
  if (open == std::string::npos || close == std::string::npos || dots > close)
    return {text};
  const auto first = text.substr(open + 1, dots - open - 1);
  const auto last = text.substr(dots + 2, close - dots - 2);
  const auto begin = whole_number_in(first), end = whole_number_in(last);
  if (!begin || !end || *begin < 0 || *end < *begin
      || static_cast<std::size_t>(*end - *begin) >= kMostShards)
    throw std::invalid_argument(text + ": {" + first + ".." + last + "} must be two numbers from "
                                + "0, in order, at most " + std::to_string(kMostShards) + " apart");
  std::vector<std::string> all;
  for (auto i = *begin; i <= *end; ++i) {
    auto digits = std::to_string(i);
    if (digits.size() < first.size())
      digits.insert(0, first.size() - digits.size(), '0');
    all.emplace_back(text.substr(0, open) + digits + text.substr(close + 1));
  }
  return all;
}

} // namespace troupe::learner::data
