#include "replay/objects/key_sources.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "replay/objects/key_answers.hpp"
#include "replay/objects/signed_requests.hpp"
#include "replay/objects/store_answers.hpp"
#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace {

constexpr std::size_t kMostAnswered = 64 << 10;
constexpr std::size_t kLongestRole = 2048;
constexpr const char* kEcsHost = "169.254.170.2";
constexpr const char* kEksHost = "169.254.170.23";
constexpr const char* kEksHost6 = "[fd00:ec2::23]";
constexpr const char* kMetadataHost = "169.254.169.254";
constexpr const char* kMetadataHost6 = "[fd00:ec2::254]";

bool is_true(const std::optional<std::string>& value) {
  std::string text = value.value_or("");
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text == "true";
}

/// True if the name of a role or session consists of letters, digits and "_+=,.@-".
bool is_role_name(const std::string& name, std::size_t most) {
  return !name.empty() && name.size() <= most && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
           || std::string_view("_+=,.@-").find(c) != std::string_view::npos;
  });
}

std::optional<KeySource> web_identity(const VariableLookup& variable, const std::string& region) {
  const auto file = variable("AWS_WEB_IDENTITY_TOKEN_FILE");
  const auto role = variable("AWS_ROLE_ARN");
  if (!file)
    return std::nullopt;
  if (!role)
    throw std::invalid_argument("AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not; set "
                                "both, or neither");
  if (!role->starts_with("arn:") || role->size() > kLongestRole || !is_secret(*role))
    throw std::invalid_argument("AWS_ROLE_ARN is not the name of a role; write for example "
                                "arn:aws:iam::123456789012:role/trainer");
  KeySource source{.kind = KeySource::Kind::web_identity,
                   .role = *role,
                   .session = variable("AWS_ROLE_SESSION_NAME").value_or("troupe"),
                   .token_file = *file};
  if (source.session.size() < 2 || !is_role_name(source.session, 64))
    throw std::invalid_argument("AWS_ROLE_SESSION_NAME must have 2 to 64 letters, digits and "
                                "characters of _+=,.@-; correct it, or leave it out");
  const char* name = "AWS_ENDPOINT_URL_STS";
  auto endpoint = variable(name);
  if (!endpoint)
    endpoint = variable(name = "AWS_ENDPOINT_URL");
  source.url = endpoint.value_or("https://sts." + region + ".amazonaws.com");
  while (source.url.ends_with('/'))
    source.url.pop_back();
  check_endpoint(name, source.url);
  return source;
}

std::optional<KeySource> container(const VariableLookup& variable) {
  KeySource source{.kind = KeySource::Kind::container};
  if (const auto path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) {
    if (!path->starts_with('/') || !is_secret(*path))
      throw std::invalid_argument("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI must begin with a slash "
                                  "and have printable characters only; correct it");
    source.url = std::string("http://") + kEcsHost + *path;
  } else if (const auto full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
    source.url = *full;
    const auto scheme = std::min(full->find("://"), full->size());
    const auto end = std::min(full->find('/', std::min(scheme + 3, full->size())), full->size());
    check_endpoint("AWS_CONTAINER_CREDENTIALS_FULL_URI", full->substr(0, end),
                   {kEcsHost, kEksHost, kEksHost6});
    if (!is_secret(*full))
      throw std::invalid_argument("AWS_CONTAINER_CREDENTIALS_FULL_URI has a space or a control "
                                  "character; correct it");
  } else {
    return std::nullopt;
  }
  source.token_file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").value_or("");
  if (source.token_file.empty())
    source.token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  return source;
}

std::optional<KeySource> instance(const VariableLookup& variable) {
  if (is_true(variable("AWS_EC2_METADATA_DISABLED")))
    return std::nullopt;
  const bool six = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE").value_or("") == "IPv6";
  KeySource source{
      .kind = KeySource::Kind::instance,
      .url = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT")
                 .value_or(std::string("http://") + (six ? kMetadataHost6 : kMetadataHost))};
  while (source.url.ends_with('/'))
    source.url.pop_back();
  check_endpoint("AWS_EC2_METADATA_SERVICE_ENDPOINT", source.url, {kMetadataHost, kMetadataHost6});
  return source;
}

std::string name_of(const KeySource& source) {
  switch (source.kind) {
  case KeySource::Kind::web_identity:
    return "the keys of AWS_ROLE_ARN " + source.role;
  case KeySource::Kind::container:
    return "the keys of this container";
  case KeySource::Kind::instance:
    return "the keys of this instance";
  }
  return {};
}

[[noreturn]] void fail(const KeySource& source, const std::string& why, long status = 0) {
  throw StoreError(name_of(source) + " cannot be obtained from " + source.url + ": " + why, status);
}

std::string token_in(const KeySource& source) {
  std::ifstream in(source.token_file, std::ios::binary);
  std::string text(kMostAnswered, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  while (text.ends_with('\n') || text.ends_with('\r') || text.ends_with(' '))
    text.pop_back();
  if (text.empty() || text.size() > kMostAnswered / 2 || text.find_first_of("\r\n") != text.npos)
    fail(source, source.token_file
                     + " has no token, or cannot be read; check the variable that "
                       "names it, and who may read it");
  return text;
}

std::string ask(const KeySource& source, HttpClient& client, HttpRequest request,
                const std::stop_token& stop) {
  request.most_answered = kMostAnswered;
  request.ca_bundle = source.ca_bundle;
  // Without a metadata service there is no answer at all, so its deadlines are short.
  const bool near = source.kind == KeySource::Kind::instance;
  request.connect_deadline = std::chrono::seconds(near ? 1 : 3);
  request.deadline = std::chrono::seconds(near ? 2 : 5);
  const auto outcome = with_attempts(
      {.most = near ? 2 : 3}, stop, [&] { return client.perform(request, stop); },
      [](const HttpOutcome& done) {
        return done.failure.empty() ? is_overload(done.answer.status) : done.lost;
      });
  if (stop.stop_requested())
    fail(source, "it was stopped");
  if (!outcome.failure.empty())
    fail(source, outcome.failure + "; check that it runs and can be reached");
  if (outcome.answer.status < 200 || outcome.answer.status > 299) {
    const std::string code = parse_error_code(outcome.answer.body);
    fail(source,
         "it sent " + std::to_string(outcome.answer.status) + (code.empty() ? "" : " " + code)
             + "; check the role, and whom it trusts",
         outcome.answer.status);
  }
  return outcome.answer.body;
}

StoreKeys of_web_identity(const KeySource& source, HttpClient& client,
                          const std::stop_token& stop) {
  const std::string form = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn="
                           + percent_encoded(source.role, false)
                           + "&RoleSessionName=" + percent_encoded(source.session, false)
                           + "&WebIdentityToken=" + percent_encoded(token_in(source), false);
  return parse_assumed_role(
      ask(source, client,
          {.method = "POST",
           .url = source.url + "/",
           .headers = {"Content-Type: application/x-www-form-urlencoded", "Accept: text/xml"},
           .body = std::as_bytes(std::span(form))},
          stop));
}

StoreKeys of_container(const KeySource& source, HttpClient& client, const std::stop_token& stop) {
  HttpRequest request{.method = "GET", .url = source.url, .headers = {"Accept: application/json"}};
  const std::string token = source.token_file.empty() ? source.token : token_in(source);
  if (token.find_first_of("\r\n") != token.npos)
    fail(source, "AWS_CONTAINER_AUTHORIZATION_TOKEN has more than one line; correct it");
  if (!token.empty())
    request.headers.push_back("Authorization: " + token);
  return parse_key_document(ask(source, client, request, stop));
}

StoreKeys of_instance(const KeySource& source, HttpClient& client, const std::stop_token& stop) {
  const std::string token = ask(source, client,
                                {.method = "PUT",
                                 .url = source.url + "/latest/api/token",
                                 .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 300"}},
                                stop);
  if (!is_secret(token))
    fail(source, "it sent no session token; is it a metadata service of version 2?");
  const auto get = [&](const std::string& name) {
    return ask(source, client,
               {.method = "GET",
                .url = source.url + "/latest/meta-data/iam/security-credentials/" + name,
                .headers = {"X-aws-ec2-metadata-token: " + token}},
               stop);
  };
  std::string role = get("");
  role.resize(std::min(role.find('\n'), role.size()));
  if (!is_role_name(role, 128))
    fail(source, "the instance has no role; attach an instance profile to it");
  StoreKeys keys = parse_key_document(get(role));
  if (keys.session_token.empty() || keys.expires == WallTime::max())
    fail(source, "the answer has no Token and Expiration");
  return keys;
}

} // namespace

std::optional<KeySource> key_source(const VariableLookup& variable, const std::string& region) {
  auto source = web_identity(variable, region);
  if (!source)
    source = container(variable);
  if (!source)
    source = instance(variable);
  if (source)
    source->ca_bundle = variable("AWS_CA_BUNDLE").value_or("");
  return source;
}

StoreKeys fetch_keys(const KeySource& source, HttpClient& client, const std::stop_token& stop) {
  try {
    switch (source.kind) {
    case KeySource::Kind::web_identity:
      return of_web_identity(source, client, stop);
    case KeySource::Kind::container:
      return of_container(source, client, stop);
    case KeySource::Kind::instance:
      return of_instance(source, client, stop);
    }
  } catch (const StoreError&) {
    throw;
  } catch (const std::runtime_error& answer) {
    fail(source, answer.what());
  }
  fail(source, "there is no such service");
}

} // namespace troupe::replay
