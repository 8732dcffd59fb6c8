#include "replay/objects/http_exchange.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string_view>

#include <curl/curl.h>

#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace {

constexpr std::chrono::seconds kLongestPause{10};
constexpr std::size_t kMostExplained = 64 << 10; // bytes of an error message; the rest is dropped

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
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

/// Waits for this time. Returns false if asked to stop.
bool pause(std::chrono::milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any none;
  std::unique_lock lock(mutex);
  none.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

} // namespace

struct HttpClient::Handle {
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

struct HttpClient::Attempt {
  const HttpRequest* request = nullptr;
  const std::stop_token* stop = nullptr;
  std::size_t sent = 0;
  bool too_large = false;
  HttpAnswer answer = {};

  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) {
    auto& attempt = *static_cast<Attempt*>(self);
    const bool refused = attempt.answer.status >= 300;
    const std::size_t most = refused ? kMostExplained : attempt.request->most_answered;
    const std::size_t room = most - std::min(most, attempt.answer.body.size());
    attempt.too_large = !refused && size > room;
    if (attempt.too_large)
      return 0; // aborts the transfer
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
    if (line.starts_with("HTTP/")) { // the actual answer may follow "100 Continue"
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

HttpClient::HttpClient() : handle_(std::make_unique<Handle>()) {}
HttpClient::~HttpClient() = default;

HttpOutcome HttpClient::perform(const HttpRequest& request, const std::stop_token& stop) {
  Attempt result{.request = &request, .stop = &stop};
  CURL* curl = handle_->curl;
  curl_easy_reset(curl); // keeps the connections
  HeaderList headers;
  for (const std::string& header : request.headers)
    append(headers, header);
  set(curl, CURLOPT_URL, request.url.c_str());
  set(curl, CURLOPT_PATH_AS_IS, 1L);
  set(curl, CURLOPT_NOSIGNAL, 1L);
  set(curl, CURLOPT_PROTOCOLS_STR, request.url.starts_with("https") ? "https" : "http");
  set(curl, CURLOPT_FOLLOWLOCATION, 0L);
  set(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  set(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!request.ca_bundle.empty())
    set(curl, CURLOPT_CAINFO, request.ca_bundle.c_str());
  if (!request.url.starts_with("https"))
    set(curl, CURLOPT_NOPROXY, "*"); // this host
  if (request.signer) {
    set(curl, CURLOPT_AWS_SIGV4, request.signer->provider.c_str());
    set(curl, CURLOPT_USERNAME, request.signer->user.c_str());
    set(curl, CURLOPT_PASSWORD, request.signer->password.c_str());
  }
  set(curl, CURLOPT_HTTPHEADER, headers.get());
  set(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.deadline.count()));
  set(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_deadline.count()));
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
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_reset(curl); // drops its pointers to the objects of this call
  if (code == CURLE_OK)
    return {.answer = std::move(result.answer)};
  return {.failure = reason.front() != '\0' ? reason.data() : curl_easy_strerror(code),
          .lost = is_lost(code),
          .too_large = result.too_large};
}

HttpOutcome with_attempts(const Attempts& attempts, const std::stop_token& stop,
                          const std::function<HttpOutcome()>& attempt,
                          const std::function<bool(const HttpOutcome&)>& again) {
  auto wait = attempts.first_pause;
  for (int tried = 1;; ++tried) {
    HttpOutcome outcome = attempt();
    outcome.tried = tried;
    if (tried >= attempts.most || stop.stop_requested() || !again(outcome))
      return outcome;
    if (!pause(wait, stop))
      return outcome;
    wait = std::min<std::chrono::milliseconds>(2 * wait, kLongestPause);
  }
}

bool is_overload(long status) {
  return status == 429 || (status >= 500 && status <= 599);
}

} // namespace troupe::replay
