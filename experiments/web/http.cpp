#include "experiments/web/http.hpp"

#include <charconv>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

namespace troupe::experiments::web {
namespace {

std::optional<std::string> decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned value = 0;
    const char* const begin = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(begin, begin + 2, value, 16).ptr != begin + 2) {
      return std::nullopt;
    }
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

} // namespace

std::string Request::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string Request::parameter(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

bool parse_target(const std::string& target, Request& request) {
  std::string_view rest = target;
  const auto mark = rest.find('?');
  const auto path = decoded(rest.substr(0, mark), false);
  if (!path || !path->starts_with('/')) {
    return false;
  }
  request.path = *path;
  rest = mark == std::string_view::npos ? "" : rest.substr(mark + 1);
  while (!rest.empty()) {
    const auto part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const auto equals = part.find('=');
    const auto name = decoded(part.substr(0, equals), true);
    const auto value =
        decoded(equals == std::string_view::npos ? "" : part.substr(equals + 1), true);
    if (!name || !value) {
      return false;
    }
    request.query[*name] = *value;
  }
  return true;
}

Response error_response(int status, const std::string& text) {
  return {.status = status,
          .body = nlohmann::json{{"error", text}}.dump(-1, ' ', false,
                                                       nlohmann::json::error_handler_t::replace)};
}

} // namespace troupe::experiments::web
