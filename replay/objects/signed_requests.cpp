#include "replay/objects/signed_requests.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include <curl/curl.h>
#include <openssl/evp.h>

#include "replay/objects/object_address.hpp"
#include "replay/objects/store_answers.hpp"
#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace {

constexpr std::chrono::seconds kLongestPause{10};
constexpr std::size_t kMostExplained = 64 << 10; // bytes of an error's answer; the rest is dropped

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

std::string hexadecimal(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw StoreError("OpenSSL cannot compute a SHA-256");
  return hexadecimal({digest.data(), size});
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

void append(HeaderList& list, const std::string& header) {
  curl_slist* longer = curl_slist_append(list.get(), header.c_str());
  if (longer == nullptr)
    throw std::bad_alloc();
  list.release();
  list.reset(longer);
}

template <class Value>
void set(CURL* curl, CURLoption option, Value value) {
  if (const CURLcode code = curl_easy_setopt(curl, option, value); code != CURLE_OK)
    throw StoreError(std::string("libcurl refuses an option: ") + curl_easy_strerror(code));
}

bool is_lost(CURLcode code) {
  switch (code) {
  case CURLE_COULDNT_RESOLVE_HOST:
  case CURLE_COULDNT_CONNECT:
  case CURLE_OPERATION_TIMEDOUT:
  case CURLE_SEND_ERROR:
  case CURLE_RECV_ERROR:
  case CURLE_GOT_NOTHING:
  case CURLE_PARTIAL_FILE:
  case CURLE_SSL_CONNECT_ERROR:
    return true;
  default:
    return false;
  }
}

bool is_overload(long status, const std::string& code) {
  return status == 429 || (status >= 500 && status <= 599) || code == "RequestTimeout";
}

std::string name_of(const StoreRequest& request) {
  return request.method + " s3://" + request.bucket
         + (request.key.empty() ? "" : "/" + request.key);
}

/// What the user may do about an answer.
std::string remedy(const StoreAnswer& answer, const std::string& code) {
  if (answer.status >= 300 && answer.status < 400)
    return "redirects are not followed; set AWS_REGION"
           + (is_plain_name(answer.region) ? " to " + answer.region : std::string())
           + " and AWS_ENDPOINT_URL to those of the bucket";
  if (code == "RequestTimeTooSkewed")
    return "set this host's clock";
  if (answer.status == 401 || answer.status == 403)
    return "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and the rights of the key";
  if (code == "NoSuchBucket")
    return "create the bucket, or correct its name";
  if (answer.status == 404)
    return "it does not exist";
  if (is_overload(answer.status, code))
    return "the store is overloaded or away; try again later";
  return "see the log of the store";
}

/// Waits; false when asked to stop.
bool pause(std::chrono::milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any none;
  std::unique_lock lock(mutex);
  none.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

} // namespace

struct SignedRequests::Handle {
  CURL* curl = nullptr;
  Handle() {
    start_curl();
    curl = curl_easy_init();
    if (curl == nullptr)
      throw std::bad_alloc();
  }
  ~Handle() { curl_easy_cleanup(curl); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
};

struct SignedRequests::Attempt {
  const StoreRequest* request = nullptr;
  const std::stop_token* stop = nullptr;
  CURLcode code = CURLE_OK;
  std::string reason = {}; // of a code that is not CURLE_OK
  std::size_t sent = 0;
  bool too_large = false;
  StoreAnswer answer = {};

  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) {
    auto& attempt = *static_cast<Attempt*>(self);
    const bool refused = attempt.answer.status >= 300;
    const std::size_t most = refused ? kMostExplained : attempt.request->most_answered;
    const std::size_t room = most - std::min(most, attempt.answer.body.size());
    attempt.too_large = !refused && size > room;
    if (attempt.too_large)
      return 0; // ends the transfer
    attempt.answer.body.append(data, std::min(size, room));
    return size;
  }
  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self) {
    static_cast<Attempt*>(self)->header({data, size});
    return size;
  }
  static std::size_t on_send(char* data, std::size_t one, std::size_t many, void* self) {
    auto& attempt = *static_cast<Attempt*>(self);
    const auto left = attempt.request->body.subspan(attempt.sent);
    const std::size_t size = std::min(left.size(), one * many);
    std::memcpy(data, left.data(), size);
    attempt.sent += size;
    return size;
  }
  static int on_seek(void* self, curl_off_t offset, int origin) {
    auto& attempt = *static_cast<Attempt*>(self);
    if (origin != SEEK_SET || offset < 0
        || static_cast<std::size_t>(offset) > attempt.request->body.size())
      return CURL_SEEKFUNC_FAIL;
    attempt.sent = static_cast<std::size_t>(offset);
    return CURL_SEEKFUNC_OK;
  }
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Attempt*>(self)->stop->stop_requested() ? 1 : 0;
  }

private:
  void header(std::string_view line) {
    if (line.starts_with("HTTP/")) { // of the answer after "100 Continue"
      answer = {};
      const auto space = std::min(line.find(' '), line.size());
      std::from_chars(line.data() + std::min(space + 1, line.size()), line.data() + line.size(),
                      answer.status);
      return;
    }
    const auto colon = std::min(line.find(':'), line.size());
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    line.remove_prefix(std::min(colon + 1, line.size()));
    while (!line.empty() && line.front() == ' ')
      line.remove_prefix(1);
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n' || line.back() == ' '))
      line.remove_suffix(1);
    if (name == "etag" && line.size() <= 256)
      answer.etag = line;
    if (name == "x-amz-bucket-region" && line.size() <= 64)
      answer.region = line;
    std::int64_t length = 0;
    if (name == "content-length"
        && std::from_chars(line.data(), line.data() + line.size(), length).ec == std::errc())
      answer.length = length;
  }
};

SignedRequests::SignedRequests(StoreOptions options) : options_(std::move(options)) {
  check(options_);
  handle_ = std::make_unique<Handle>();
}

SignedRequests::~SignedRequests() = default;

SignedRequests::Attempt SignedRequests::attempt(const StoreRequest& request,
                                                const std::stop_token& stop) {
  Attempt result{.request = &request, .stop = &stop};
  CURL* curl = handle_->curl;
  curl_easy_reset(curl); // keeps its connections
  std::string url = options_.endpoint + "/" + request.bucket;
  if (!request.key.empty())
    url += "/" + percent_encoded(request.key, true);
  char separator = '?';
  for (const auto& [name, value] : request.query) { // sorted, as the signature wants it
    url += separator + percent_encoded(name, false) + "=" + percent_encoded(value, false);
    separator = '&';
  }
  const std::string provider = "aws:amz:" + options_.region + ":s3";
  HeaderList headers;
  append(headers, "x-amz-content-sha256: " + sha256(request.body));
  if (!options_.session_token.empty())
    append(headers, "x-amz-security-token: " + options_.session_token);
  for (const std::string& header : request.headers)
    append(headers, header);

  set(curl, CURLOPT_URL, url.c_str());
  set(curl, CURLOPT_PATH_AS_IS, 1L);
  set(curl, CURLOPT_NOSIGNAL, 1L);
  set(curl, CURLOPT_PROTOCOLS_STR, options_.endpoint.starts_with("https") ? "https" : "http");
  set(curl, CURLOPT_FOLLOWLOCATION, 0L);
  set(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  set(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!options_.ca_bundle.empty())
    set(curl, CURLOPT_CAINFO, options_.ca_bundle.c_str());
  if (!options_.endpoint.starts_with("https"))
    set(curl, CURLOPT_NOPROXY, "*"); // this host
  set(curl, CURLOPT_AWS_SIGV4, provider.c_str());
  set(curl, CURLOPT_USERNAME, options_.access_key.c_str());
  set(curl, CURLOPT_PASSWORD, options_.secret_key.c_str());
  set(curl, CURLOPT_HTTPHEADER, headers.get());
  const auto bytes = std::max(request.body.size(), request.most_answered);
  const auto deadline =
      options_.request_deadline + std::chrono::seconds(bytes / options_.slowest_rate);
  set(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(std::chrono::milliseconds(deadline).count()));
  set(curl, CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::chrono::milliseconds(options_.connect_deadline).count()));
  set(curl, CURLOPT_WRITEFUNCTION, &Attempt::on_body);
  set(curl, CURLOPT_WRITEDATA, &result);
  set(curl, CURLOPT_HEADERFUNCTION, &Attempt::on_header);
  set(curl, CURLOPT_HEADERDATA, &result);
  set(curl, CURLOPT_XFERINFOFUNCTION, &Attempt::on_progress);
  set(curl, CURLOPT_XFERINFODATA, &result);
  set(curl, CURLOPT_NOPROGRESS, 0L);
  if (request.method == "PUT") {
    set(curl, CURLOPT_UPLOAD, 1L);
    set(curl, CURLOPT_READFUNCTION, &Attempt::on_send);
    set(curl, CURLOPT_READDATA, &result);
    set(curl, CURLOPT_SEEKFUNCTION, &Attempt::on_seek);
    set(curl, CURLOPT_SEEKDATA, &result);
    set(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  } else if (request.method == "POST") {
    set(curl, CURLOPT_POST, 1L);
    set(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(curl, CURLOPT_POSTFIELDS,
        request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
  } else if (request.method == "HEAD") {
    set(curl, CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET") {
    set(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  std::array<char, CURL_ERROR_SIZE> reason{};
  set(curl, CURLOPT_ERRORBUFFER, reason.data());
  result.code = curl_easy_perform(curl);
  result.reason = reason.front() != '\0' ? reason.data() : curl_easy_strerror(result.code);
  curl_easy_reset(curl); // forgets the addresses of this call's objects
  return result;
}

StoreAnswer SignedRequests::send(const StoreRequest& request, const std::stop_token& stop) {
  auto wait = options_.first_pause;
  for (int tried = 1;; ++tried) {
    Attempt done = attempt(request, stop);
    auto& answer = done.answer;
    if (stop.stop_requested())
      throw StoreError(name_of(request) + " was stopped");
    const std::string code =
        done.code == CURLE_OK && answer.status >= 300 ? parse_error_code(answer.body) : "";
    if (done.code == CURLE_OK && answer.status >= 200 && answer.status < 300)
      return std::move(answer);
    const bool again =
        done.code == CURLE_OK ? is_overload(answer.status, code) : is_lost(done.code);
    if (!again || tried == options_.attempts) {
      const std::string times = tried == 1 ? "" : " (attempt " + std::to_string(tried) + ")";
      if (done.too_large)
        throw StoreError(name_of(request) + " got more than "
                         + std::to_string(request.most_answered)
                         + " bytes; is AWS_ENDPOINT_URL a server that speaks S3?");
      if (done.code != CURLE_OK)
        throw StoreError(name_of(request) + " failed" + times + " at " + options_.endpoint + ": "
                         + done.reason + "; check AWS_ENDPOINT_URL and the network");
      throw StoreError(name_of(request) + " got " + std::to_string(answer.status)
                           + (code.empty() ? "" : " " + code) + times + " from " + options_.endpoint
                           + "; " + remedy(answer, code),
                       answer.status, code);
    }
    if (!pause(wait, stop))
      throw StoreError(name_of(request) + " was stopped");
    wait = std::min<std::chrono::milliseconds>(2 * wait, kLongestPause);
  }
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
