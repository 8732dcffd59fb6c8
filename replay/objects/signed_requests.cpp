#include "replay/objects/signed_requests.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include <openssl/evp.h>

#include "env/text/hexadecimal.hpp"
#include "replay/objects/object_address.hpp"
#include "replay/objects/store_answers.hpp"
#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace {

std::string sha256(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw StoreError("OpenSSL cannot compute a SHA-256");
  return env::hexadecimal({digest.data(), size});
}

std::string name_of(const StoreRequest& request) {
  return request.method + " s3://" + request.bucket
         + (request.key.empty() ? "" : "/" + request.key);
}

/// Says what the user can do about an error.
std::string remedy(const HttpAnswer& answer, const std::string& code) {
  if (answer.status >= 300 && answer.status < 400)
    return "redirects are not followed; set AWS_REGION"
           + (is_plain_name(answer.region) ? " to " + answer.region : std::string())
           + " and AWS_ENDPOINT_URL to those of the bucket";
  if (code == "RequestTimeTooSkewed")
    return "set this host's clock";
  if (answer.status == 401 || answer.status == 403)
    return "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and the rights of the key "
           "or role";
  if (code == "NoSuchBucket")
    return "create the bucket, or correct its name";
  if (answer.status == 404)
    return "it does not exist";
  if (answer.status == 412)
    return "the object was replaced meanwhile; start again";
  if (is_overload(answer.status) || code == "RequestTimeout")
    return "the store is overloaded or unavailable; try again later";
  return "see the log of the store";
}

} // namespace

SignedRequests::SignedRequests(StoreOptions options) : options_(std::move(options)) {
  check(options_);
}

HttpOutcome SignedRequests::attempt(const StoreRequest& request, const StoreKeys& keys,
                                    const std::stop_token& stop) {
  HttpRequest sent{.method = request.method,
                   .url = options_.endpoint + "/" + request.bucket,
                   .headers = {"x-amz-content-sha256: " + sha256(request.body)},
                   .body = request.body,
                   .most_answered = request.most_answered,
                   .ca_bundle = options_.ca_bundle,
                   .signer = Signer{.provider = "aws:amz:" + options_.region + ":s3",
                                    .user = keys.access_key,
                                    .password = keys.secret_key},
                   .connect_deadline = options_.connect_deadline};
  if (!request.key.empty())
    sent.url += "/" + percent_encoded(request.key, true);
  char separator = '?';
  for (const auto& [name, value] : request.query) { // sorted, as the signature requires
    sent.url += separator + percent_encoded(name, false) + "=" + percent_encoded(value, false);
    separator = '&';
  }
  if (!keys.session_token.empty())
    sent.headers.push_back("x-amz-security-token: " + keys.session_token);
  sent.headers.insert(sent.headers.end(), request.headers.begin(), request.headers.end());
  const auto bytes = std::max(request.body.size(), request.most_answered);
  sent.deadline = options_.request_deadline + std::chrono::seconds(bytes / options_.slowest_rate);
  return client_.perform(sent, stop);
}

HttpAnswer SignedRequests::send(const StoreRequest& request, const std::stop_token& stop) {
  const Attempts attempts{.most = options_.attempts, .first_pause = options_.first_pause};
  StoreKeys keys;
  std::string code;
  auto [failure, lost, too_large, answer, tried] = with_attempts(
      attempts, stop,
      [&] {
        keys = options_.temporary ? options_.temporary->current(stop) : options_.keys;
        return attempt(request, keys, stop);
      },
      [&](const HttpOutcome& outcome) {
        if (!outcome.failure.empty())
          return outcome.lost;
        code = outcome.answer.status >= 300 ? parse_error_code(outcome.answer.body) : "";
        if (code == "ExpiredToken" && options_.temporary)
          return options_.temporary->forget(keys);
        return is_overload(outcome.answer.status) || code == "RequestTimeout";
      });
  if (stop.stop_requested())
    throw StoreError(name_of(request) + " was stopped");
  if (failure.empty() && answer.status >= 200 && answer.status < 300)
    return std::move(answer);
  const std::string times = tried == 1 ? "" : " (attempt " + std::to_string(tried) + ")";
  if (too_large)
    throw StoreError(name_of(request) + " got more than " + std::to_string(request.most_answered)
                     + " bytes; is AWS_ENDPOINT_URL a server that speaks S3?");
  if (!failure.empty())
    throw StoreError(name_of(request) + " failed" + times + " at " + options_.endpoint + ": "
                     + failure + "; check AWS_ENDPOINT_URL and the network");
  code = parse_error_code(answer.body);
  throw StoreError(name_of(request) + " got " + std::to_string(answer.status)
                       + (code.empty() ? "" : " " + code) + times + " from " + options_.endpoint
                       + "; " + remedy(answer, code),
                   answer.status, code);
}

std::string percent_encoded(const std::string& text, bool keep_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                       || std::strchr("-._~", c) != nullptr || (keep_slashes && c == '/');
    if (plain && c != '\0') {
      encoded += c;
      continue;
    }
    encoded += '%';
    encoded += kDigits[static_cast<unsigned char>(c) >> 4];
    encoded += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return encoded;
}

} // namespace troupe::replay
