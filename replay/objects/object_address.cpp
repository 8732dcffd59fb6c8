#include "replay/objects/object_address.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::replay {

namespace {

constexpr std::string_view kScheme = "s3://";
constexpr std::size_t kLongestKey = 1024; // bytes, limit of S3
constexpr std::size_t kShortestBucket = 3, kLongestBucket = 63;

bool is_bucket(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return name.size() >= kShortestBucket && name.size() <= kLongestBucket
         && std::all_of(name.begin(), name.end(), fits) && name.front() != '.'
         && name.front() != '-' && name.back() != '.' && name.back() != '-'
         && name.find("..") == name.npos;
}

} // namespace

bool is_object_address(std::string_view text) {
  return text.starts_with(kScheme);
}

bool is_plain_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestKey)
    return false;
  for (const char c : name)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == '\\')
      return false;
  while (true) {
    const auto end = std::min(name.find('/'), name.size());
    const auto part = name.substr(0, end);
    if (part.empty() || part == "." || part == "..")
      return false;
    if (end == name.size())
      return true;
    name.remove_prefix(end + 1);
  }
}

ObjectAddress parse_object_address(std::string_view text, const std::string& option) {
  const auto refuse = [&](const std::string& rule) {
    throw std::invalid_argument(option + " is \"" + std::string(text) + "\": " + rule
                                + "; write s3://bucket/prefix");
  };
  if (!is_object_address(text))
    refuse("an address in an object store begins with s3://");
  auto rest = text.substr(kScheme.size());
  const auto end = std::min(rest.find('/'), rest.size());
  ObjectAddress address{.bucket = std::string(rest.substr(0, end))};
  if (!is_bucket(address.bucket))
    refuse("the name of a bucket has 3 to 63 lower-case letters, digits, dots and hyphens");
  rest.remove_prefix(end);
  while (rest.starts_with('/'))
    rest.remove_prefix(1);
  while (rest.ends_with('/'))
    rest.remove_suffix(1);
  if (!rest.empty() && !is_plain_name(rest))
    refuse("a prefix has at most 1024 bytes and no empty parts, \".\", \"..\", backslashes or "
           "control characters");
  address.key = std::string(rest);
  return address;
}

std::string text_of(const ObjectAddress& address) {
  return std::string(kScheme) + address.bucket + (address.key.empty() ? "" : "/" + address.key);
}

ObjectAddress below(const ObjectAddress& folder, std::string_view name) {
  return {.bucket = folder.bucket,
          .key = folder.key.empty() ? std::string(name) : folder.key + "/" + std::string(name)};
}

} // namespace troupe::replay
