#include "replay/chunks/signature.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>

#include "replay/storage/segment_file.hpp"

namespace troupe::replay {

namespace {

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::string describe(const env::ArraySpec& column) {
  std::ostringstream text;
  text << column.name << ' ' << env::element_name(column.type) << " [";
  for (std::size_t i = 0; i < column.shape.size(); ++i)
    text << (i > 0 ? ", " : "") << column.shape[i];
  text << ']';
  return text.str();
}

[[noreturn]] void refuse(const env::ArraySpec& column, const std::string& rule) {
  throw std::invalid_argument("replay column '" + column.name + "' " + rule);
}

} // namespace

bool is_utf8(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) {
      return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
    };
    const std::size_t more = byte(0) < 0x80   ? 0
                             : byte(0) < 0xc2 ? 4 // never a leading byte
                             : byte(0) < 0xe0 ? 1
                             : byte(0) < 0xf0 ? 2
                             : byte(0) < 0xf5 ? 3
                                              : 4;
    for (std::size_t i = 1; i <= more; ++i)
      if (more == 4 || (byte(i) & 0xc0U) != 0x80)
        return false;
    // Overlong forms, UTF-16 surrogates, and code points beyond Unicode.
    if ((byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f)
        || (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f))
      return false;
    at += more + 1;
  }
  return true;
}

TransitionSpec::operator Signature() const {
  std::ostringstream items;
  items.precision(17);
  if (whole_episodes)
    items << "episodes of stack " << stack << ", steps " << sequence_steps;
  else if (is_sequence())
    items << "sequences of stack " << stack << ", steps " << sequence_steps << ", period "
          << sequence_period;
  else
    items << "transitions of stack " << stack << ", n_step " << n_step << ", discount " << discount;
  for (std::size_t i = 0; i < action_choices.size(); ++i)
    items << (i == 0 ? ", choices " : " ") << action_choices[i];
  if (has_hindsight())
    items << ", hindsight " << hindsight.goals << ' ' << goal_strategy_name(hindsight.strategy)
          << " at " << hindsight.achieved << ' ' << hindsight.desired;
  Signature made{.columns = {frame}, .items = items.str()};
  made.columns.insert(made.columns.end(), vectors.begin(), vectors.end());
  made.columns.insert(made.columns.end(), {{"action", env::ElementType::float32, {action_size}},
                                           {"reward", env::ElementType::float32, {}},
                                           {"discount", env::ElementType::float32, {}}});
  if (is_sequence()) {
    made.columns.push_back({"first", env::ElementType::uint8, {}});
    made.columns.insert(made.columns.end(), extras.begin(), extras.end());
  }
  if (running_return)
    made.columns.push_back({"running_return", env::ElementType::float32, {}});
  if (has_hindsight())
    made.columns.push_back({"goal", env::ElementType::float32, {hindsight.size}});
  for (int lane = 0; lane < hindsight.goals; ++lane) {
    const std::string number = "#" + std::to_string(lane);
    made.columns.push_back({"goal" + number, env::ElementType::float32, {hindsight.size}});
    made.columns.push_back({"reward" + number, env::ElementType::float32, {}});
    made.columns.push_back({"discount" + number, env::ElementType::float32, {}});
  }
  return made;
}

void check(const Signature& signature) {
  const std::size_t count = signature.columns.size();
  if (count < 1 || count > kMaxColumns)
    throw std::invalid_argument("a replay signature has " + std::to_string(count)
                                + " columns but must have 1 to " + std::to_string(kMaxColumns));
  std::set<std::string> names;
  std::size_t row = 0;
  for (const env::ArraySpec& column : signature.columns) {
    if (column.name.empty() || column.name.size() > 256)
      refuse(column, "has a name of " + std::to_string(column.name.size())
                         + " characters but it must be 1 to 256");
    if (!is_utf8(column.name))
      refuse(column, "has a name that is not UTF-8; messages and files cannot carry it");
    if (!names.insert(column.name).second)
      refuse(column, "exists twice; give each column its own name");
    if (column.type > env::ElementType::int64)
      refuse(column, "has an element type that this program does not know");
    if (column.shape.size() > 8)
      refuse(column,
             "is of rank " + std::to_string(column.shape.size()) + " but at most 8 is allowed");
    std::size_t bytes = env::element_bytes(column.type);
    for (const std::int64_t n : column.shape) {
      if (n < 1 || static_cast<std::size_t>(n) > kMaxRowBytes / bytes)
        refuse(column, "has an extent of " + std::to_string(n)
                           + " but extents must be positive and a step at most 256 MiB");
      bytes *= static_cast<std::size_t>(n);
    }
    row += round_up(bytes, 16);
    if (row > kMaxRowBytes)
      refuse(column, "makes a step larger than 256 MiB; store less of it");
  }
}

std::string describe(const Signature& signature) {
  std::string text;
  for (const env::ArraySpec& column : signature.columns)
    text += (text.empty() ? "" : ", ") + describe(column);
  return text + (signature.items.empty() ? "" : "; " + signature.items);
}

std::string difference(const Signature& expected, const Signature& got) {
  const std::size_t columns = std::max(expected.columns.size(), got.columns.size());
  for (std::size_t i = 0; i < columns; ++i) {
    const auto text = [i](const Signature& of) {
      return i < of.columns.size() ? describe(of.columns[i]) : std::string("nothing");
    };
    if (text(expected) != text(got))
      return "column " + std::to_string(i) + ": expected " + text(expected) + ", got " + text(got);
  }
  if (expected.items != got.items)
    return "items: expected '" + expected.items + "', got '" + got.items + "'";
  return "";
}

std::uint64_t fingerprint(const Signature& signature) {
  const std::string text = describe(signature);
  return checksum_of(std::as_bytes(std::span(text)));
}

RowLayout::RowLayout(const Signature& of) : signature((check(of), of)) {
  std::size_t at = 0;
  const auto skip_to = [&](std::size_t next) {
    if (next > at)
      gaps.push_back({at, next - at});
    at = next;
  };
  for (const env::ArraySpec& column : of.columns) {
    skip_to(round_up(at, env::element_bytes(column.type)));
    columns.push_back({at, column.bytes()});
    at += column.bytes();
  }
  skip_to(round_up(at, 16));
  row_bytes = at;
  for (std::size_t i = 1; i < of.columns.size(); ++i)
    if (of.columns[i].name == "action")
      vectors = i - 1;
}

} // namespace troupe::replay
