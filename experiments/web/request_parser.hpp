#pragma once

#include <utility>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>

#include "experiments/web/http.hpp"

namespace troupe::experiments::web {

/// Parses a request with Beast. Beast limits only the headers that it has not parsed yet; this
/// class limits all headers together, trailers included.
class RequestParser : public boost::beast::http::basic_parser<true> {
public:
  RequestParser(std::uint32_t header_bytes, std::uint64_t body_bytes) : left_(header_bytes) {
    header_limit(header_bytes);
    body_limit(body_bytes);
  }

  Request& request() { return request_; }
  const std::string& target() const { return target_; }
  /// Whether the client sends the body only after the answer "100 Continue", once the header has
  /// been parsed. A client of HTTP/1.0 does not know that answer.
  bool awaits_continue() const {
    return version_ >= 11 && !is_done()
           && boost::beast::iequals(request_.header("expect"), "100-continue");
  }

private:
  using Error = boost::beast::error_code;
  using Text = boost::beast::string_view;

  void take(std::size_t bytes, Error& error) {
    if (bytes > left_) {
      error = boost::beast::http::error::header_limit;
    } else {
      left_ -= bytes;
    }
  }

  void on_request_impl(boost::beast::http::verb, Text method, Text target, int version,
                       Error& error) override {
    version_ = version;
    take(method.size() + target.size(), error);
    request_.method = std::string(method);
    target_ = std::string(target);
  }
  void on_field_impl(boost::beast::http::field, Text name, Text value, Error& error) override {
    constexpr std::size_t kAround = 4; // ": " and the line break
    take(name.size() + value.size() + kAround, error);
    if (error) {
      return;
    }
    std::string key(name);
    for (char& c : key) {
      c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    const auto [at, fresh] = request_.headers.try_emplace(std::move(key), std::string(value));
    if (!fresh) { // if a header occurs twice, neither value counts
      at->second.clear();
    }
  }
  std::size_t on_body_impl(Text text, Error&) override {
    request_.body.append(text.data(), text.size());
    return text.size();
  }
  std::size_t on_chunk_body_impl(std::uint64_t, Text text, Error& error) override {
    return on_body_impl(text, error);
  }
  void on_response_impl(int, Text, int, Error&) override {}
  void on_header_impl(Error&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Error&) override {}
  void on_chunk_header_impl(std::uint64_t, Text, Error&) override {}
  void on_finish_impl(Error&) override {}

  Request request_;
  std::string target_;
  int version_ = 0;  // 11: HTTP/1.1
  std::size_t left_; // bytes of headers that may still follow
};

} // namespace troupe::experiments::web
