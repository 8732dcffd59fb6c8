#include "collectives/rendezvous/node_list.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>

namespace troupe::collectives {
namespace {

constexpr std::size_t kLongestList = 1 << 20; // bytes
constexpr std::size_t kLongestName = 253;     // bytes of a host name
constexpr std::size_t kMostDigits = 9;

[[noreturn]] void refuse(std::string_view list, std::size_t at, const std::string& rule) {
  throw std::invalid_argument(shown(list) + ", character " + std::to_string(at + 1) + ": " + rule);
}

/// Parses one list from left to right.
class Reader {
public:
  explicit Reader(std::string_view list) : list_(list) {
    if (list.empty() || list.size() > kLongestList)
      refuse(list, 0, "must have between 1 byte and 1 MiB");
  }

  bool done() const { return at_ == list_.size(); }
  char peek() const { return done() ? '\0' : list_[at_]; }
  bool take(char wanted) {
    const bool here = !done() && list_[at_] == wanted;
    at_ += here ? 1 : 0;
    return here;
  }
  void need(char wanted, const char* rule) {
    if (!take(wanted))
      fail(rule);
  }
  [[noreturn]] void fail(const std::string& rule) const { refuse(list_, at_, rule); }

  std::string_view digits() {
    const auto begin = at_;
    while (!done() && std::isdigit(static_cast<unsigned char>(list_[at_])))
      ++at_;
    if (at_ == begin || at_ - begin > kMostDigits)
      refuse(list_, begin, "a number of 1 to 9 digits is expected here");
    return list_.substr(begin, at_ - begin);
  }

  std::string_view word() {
    const auto begin = at_;
    while (!done()
           && (std::isalnum(static_cast<unsigned char>(list_[at_])) || list_[at_] == '-'
               || list_[at_] == '.' || list_[at_] == '_'))
      ++at_;
    return list_.substr(begin, at_ - begin);
  }

private:
  std::string_view list_;
  std::size_t at_ = 0;
};

int number(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

/// Returns the contents of one pair of brackets: "1-3,07]" becomes 1 2 3 07. The opening bracket
/// has already been read.
std::vector<std::string> read_bracket(Reader& reader) {
  std::vector<std::string> result;
  do {
    const auto first = reader.digits();
    const auto last = reader.take('-') ? reader.digits() : first;
    const int low = number(first), high = number(last);
    if (high < low)
      reader.fail("a range must not decrease");
    if (result.size() + static_cast<std::size_t>(high - low) >= kMostNodes)
      reader.fail("more than " + std::to_string(kMostNodes) + " names");
    for (int value = low; value <= high; ++value) {
      auto text = std::to_string(value);
      if (text.size() < first.size()) // pads to the first number's width: 07 is followed by 08
        text.insert(0, first.size() - text.size(), '0');
      result.push_back(std::move(text));
    }
  } while (reader.take(','));
  reader.need(']', "a range must end with ], and hold only numbers");
  return result;
}

} // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::string result = "\"";
  for (const char c : text.substr(0, kShown))
    result += std::isprint(static_cast<unsigned char>(c)) ? c : '?';
  return result + (text.size() > kShown ? "…\"" : "\"");
}

std::vector<std::string> expand_node_list(std::string_view list) {
  Reader reader(list);
  std::vector<std::string> result;
  do {
    std::vector<std::string> names{std::string(reader.word())};
    while (reader.take('[')) {
      const auto middle = read_bracket(reader);
      const auto end = reader.word();
      if (result.size() + names.size() * middle.size() > kMostNodes)
        reader.fail("more than " + std::to_string(kMostNodes) + " names");
      std::vector<std::string> longer;
      for (const auto& begin : names)
        for (const auto& part : middle)
          longer.push_back(begin + part + std::string(end));
      names = std::move(longer);
    }
    for (auto& name : names) {
      if (name.empty() || name.size() > kLongestName)
        reader.fail("a host name has between 1 and 253 characters");
      result.push_back(std::move(name));
    }
    if (result.size() > kMostNodes)
      reader.fail("more than " + std::to_string(kMostNodes) + " names");
  } while (reader.take(','));
  if (!reader.done())
    reader.fail("a host name has letters, digits, '-', '.', '_' and ranges in brackets");
  return result;
}

std::vector<int> expand_task_counts(std::string_view counts) {
  Reader reader(counts);
  std::vector<int> result;
  do {
    const int tasks = number(reader.digits());
    int times = 1;
    if (reader.take('(')) {
      reader.need('x', "a repetition is written (x3)");
      times = number(reader.digits());
      reader.need(')', "a repetition is written (x3)");
    }
    if (result.size() + static_cast<std::size_t>(times) > kMostNodes)
      reader.fail("more than " + std::to_string(kMostNodes) + " nodes");
    result.insert(result.end(), static_cast<std::size_t>(times), tasks);
  } while (reader.take(','));
  if (!reader.done())
    reader.fail("counts must be separated by commas");
  return result;
}

} // namespace troupe::collectives
