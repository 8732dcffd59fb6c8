#include "replay/objects/key_answers.hpp"

#include <chrono>
#include <cstdio>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace troupe::replay {

namespace {

constexpr std::size_t kMostDocument = 64 << 10;

[[noreturn]] void refuse_document(const std::string& why) {
  throw std::runtime_error("the answer " + why);
}

std::string text_in(const nlohmann::json& document, const char* name) {
  const auto found = document.find(name);
  if (found == document.end() || found->is_null())
    return {};
  if (!found->is_string())
    refuse_document(std::string("has no text for ") + name);
  return found->get<std::string>();
}

} // namespace

StoreKeys parse_key_document(const std::string& json) {
  if (json.size() > kMostDocument)
    refuse_document("has more than 64 KiB");
  const auto document = nlohmann::json::parse(json, nullptr, false);
  if (!document.is_object())
    refuse_document("is not a JSON object");
  if (const std::string code = text_in(document, "Code"); !code.empty() && code != "Success")
    refuse_document("says that there are no keys: this host may not use its role");
  StoreKeys keys{.access_key = text_in(document, "AccessKeyId"),
                 .secret_key = text_in(document, "SecretAccessKey"),
                 .session_token = text_in(document, "Token")};
  if (!is_secret(keys.access_key) || !is_secret(keys.secret_key)
      || (!keys.session_token.empty() && !is_secret(keys.session_token)))
    refuse_document("has no AccessKeyId, SecretAccessKey and Token of printable characters");
  if (const std::string expires = text_in(document, "Expiration"); !expires.empty())
    keys.expires = parse_expiry(expires);
  return keys;
}

WallTime parse_expiry(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, end = 0;
  const int fields = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day,
                                 &hour, &minute, &second, &end);
  std::string rest = fields == 6 ? text.substr(static_cast<std::size_t>(end)) : "";
  if (rest.starts_with('.'))
    rest.erase(0, std::min(rest.find_first_not_of("0123456789", 1), rest.size()));
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if ((rest != "Z" && rest != "+00:00") || !date.ok() || hour < 0 || hour > 23 || minute < 0
      || minute > 59 || second < 0 || second > 60 || year < 1970 || year > 2200)
    refuse_document("has an Expiration that is not a time like 2026-11-27T03:10:16Z");
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute)
         + std::chrono::seconds(second);
}

} // namespace troupe::replay
