#include "replay/objects/store_options.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "env/text/number_in.hpp"
#include "replay/objects/http_exchange.hpp"
#include "replay/objects/key_sources.hpp"
#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace {

constexpr std::size_t kMostCredentialBytes = 1 << 20;
constexpr std::size_t kSmallestPart = std::size_t{5} << 20; // limit of S3

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool is_printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

void check_secret(const std::string& name, const std::string& value) {
  if (!is_secret(value))
    throw std::invalid_argument(name
                                + " is empty, too long, or has a space or a control character "
                                  "(its value is not shown); copy it again");
}

/// Reads the keys of one profile from a credentials file. The file has sections in brackets, lines
/// "name = value", and comment lines that start with # or ;.
void read_profile(const std::string& path, const std::string& profile, StoreKeys& keys) {
  std::ifstream in(path);
  std::string line, section;
  std::size_t bytes = 0;
  while (std::getline(in, line)) {
    bytes += line.size();
    if (bytes > kMostCredentialBytes)
      throw std::invalid_argument(path + " has more than 1 MiB; it is not a file of credentials");
    line = trimmed(line);
    if (line.empty() || line.front() == '#' || line.front() == ';')
      continue;
    if (line.front() == '[' && line.back() == ']') {
      section = trimmed(line.substr(1, line.size() - 2));
      continue;
    }
    const auto equals = line.find('=');
    if (section != profile || equals == line.npos)
      continue;
    const std::string name = trimmed(line.substr(0, equals));
    const std::string value = trimmed(line.substr(equals + 1));
    std::string* const key = name == "aws_access_key_id"       ? &keys.access_key
                             : name == "aws_secret_access_key" ? &keys.secret_key
                             : name == "aws_session_token"     ? &keys.session_token
                                                               : nullptr;
    if (key == nullptr)
      continue;
    if (!value.empty())
      check_secret(name + " of the profile " + profile + " in " + path, value);
    *key = value;
  }
}

/// Returns the keys from the two variables, or else from the profile; empty keys if neither has
/// them.
StoreKeys find_keys(const VariableLookup& variable, const std::string& path,
                    const std::string& profile) {
  StoreKeys keys{.access_key = variable("AWS_ACCESS_KEY_ID").value_or(""),
                 .secret_key = variable("AWS_SECRET_ACCESS_KEY").value_or(""),
                 .session_token = variable("AWS_SESSION_TOKEN").value_or("")};
  if (!keys.access_key.empty() && !keys.secret_key.empty())
    return keys;
  if (!keys.access_key.empty() || !keys.secret_key.empty())
    throw std::invalid_argument(
        "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set both");
  keys.session_token.clear();
  read_profile(path, profile, keys);
  return keys;
}

/// Adds the keys from the two variables or the profile, or else from the service that lends keys to
/// this host.
void add_keys(const VariableLookup& variable, StoreOptions& options) {
  const std::string profile = variable("AWS_PROFILE").value_or("default");
  const std::string path = variable("AWS_SHARED_CREDENTIALS_FILE")
                               .value_or(variable("HOME").value_or("") + "/.aws/credentials");
  options.keys = find_keys(variable, path, profile);
  if (!options.keys.access_key.empty() && !options.keys.secret_key.empty())
    return;
  const auto source = variable("AWS_PROFILE") ? std::nullopt : key_source(variable, options.region);
  const std::string none =
      "no credentials for the object store: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not "
      "set, "
      + path + " has no keys of the profile " + profile;
  const std::string remedy = "; set the two variables, or AWS_PROFILE";
  if (!source)
    throw std::invalid_argument(none + remedy);
  options.temporary = std::make_shared<TemporaryKeys>(
      [source = *source, client = std::make_shared<HttpClient>()](const std::stop_token& stop) {
        return fetch_keys(source, *client, stop);
      });
  try {
    options.temporary->current();
  } catch (const StoreError& failure) {
    if (source->kind != KeySource::Kind::instance)
      throw;
    throw std::invalid_argument(none + ", and " + failure.what() + remedy);
  }
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "[::1]"
         || (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

} // namespace

void check_endpoint(const std::string& name, const std::string& endpoint,
                    std::initializer_list<const char*> others) {
  if (endpoint.find('@') != endpoint.npos)
    throw std::invalid_argument(
        name
        + " has a user or password in it (it is not shown); "
          "write scheme://host:port, and put the keys into their own variables");
  const auto refuse = [&](const std::string& rule) {
    throw std::invalid_argument(name + " is \"" + endpoint + "\": " + rule
                                + "; write for example https://s3.example.org");
  };
  const auto slashes = endpoint.find("://");
  const std::string scheme = endpoint.substr(0, std::min(slashes, endpoint.size()));
  if (scheme != "https" && scheme != "http")
    refuse("an endpoint begins with https:// or http://");
  const std::string rest = endpoint.substr(slashes + 3);
  if (rest.empty() || !is_printable(rest) || rest.find_first_of("/?#\\\"") != rest.npos)
    refuse("an endpoint is scheme://host or scheme://host:port, without a path");
  const auto colon = rest.rfind(':');
  const bool has_port = colon != rest.npos && rest.find(']', colon) == rest.npos;
  const std::string host = has_port ? rest.substr(0, colon) : rest;
  if (has_port && !env::number_in<std::uint16_t>(rest.substr(colon + 1), 1, 65535))
    refuse("a port is a number from 1 to 65535");
  if (scheme == "http" && !is_loopback(host)
      && std::find(others.begin(), others.end(), host) == others.end())
    refuse("without TLS only a server on this host may be used, because data would cross the "
           "network unprotected");
}

namespace {

/// Checks the region and the endpoint.
void check_place(const StoreOptions& options) {
  const auto in_region = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'
           || c == '_';
  };
  if (options.region.empty() || options.region.size() > 64
      || !std::all_of(options.region.begin(), options.region.end(), in_region))
    throw std::invalid_argument("AWS_REGION is \"" + options.region
                                + "\": a region has letters, digits and hyphens; write for "
                                  "example us-east-1");
  check_endpoint("AWS_ENDPOINT_URL", options.endpoint);
}

} // namespace

std::optional<std::string> process_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

StoreOptions store_options(const VariableLookup& variable) {
  StoreOptions options;
  if (const auto region = variable("AWS_REGION"))
    options.region = *region;
  else if (const auto fallback = variable("AWS_DEFAULT_REGION"))
    options.region = *fallback;
  if (const auto of_s3 = variable("AWS_ENDPOINT_URL_S3"))
    options.endpoint = *of_s3;
  else
    options.endpoint =
        variable("AWS_ENDPOINT_URL").value_or("https://s3." + options.region + ".amazonaws.com");
  while (options.endpoint.ends_with('/'))
    options.endpoint.pop_back();
  options.ca_bundle = variable("AWS_CA_BUNDLE").value_or("");
  check_place(options);
  add_keys(variable, options);
  check(options);
  return options;
}

void check(const StoreOptions& options) {
  check_place(options);
  if (!options.temporary) {
    check_secret("AWS_ACCESS_KEY_ID", options.keys.access_key);
    check_secret("AWS_SECRET_ACCESS_KEY", options.keys.secret_key);
    if (!options.keys.session_token.empty())
      check_secret("AWS_SESSION_TOKEN", options.keys.session_token);
  }
  if (options.part_bytes < kSmallestPart || options.part_bytes > kLargestPart)
    throw std::invalid_argument("part_bytes is " + std::to_string(options.part_bytes)
                                + ": a part has 5 to 512 MiB");
  if (options.page_keys < 1 || options.page_keys > 1000)
    throw std::invalid_argument("page_keys is " + std::to_string(options.page_keys)
                                + ": a page has 1 to 1000 keys");
  if (options.attempts < 1 || options.slowest_rate == 0)
    throw std::invalid_argument("attempts and slowest_rate must be at least 1");
}

} // namespace troupe::replay
