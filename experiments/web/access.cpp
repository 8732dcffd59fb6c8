#include "experiments/web/access.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "experiments/web/secrets.hpp"

namespace troupe::experiments::web {
namespace {

/// Returns "127.0.0.1" for "127.0.0.1:8080" and "[::1]" for "[::1]:8080".
std::string host_part(const std::string& host) {
  const auto end = host.starts_with('[') ? host.find(']') : std::string::npos;
  return host.substr(0, end != std::string::npos ? end + 1 : host.find(':'));
}

/// `server` is the server's own address, which may be another one of the loopback interface.
bool is_loopback(const std::string& host, const std::string& server) {
  const std::string name = host_part(host);
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]"
         || name == host_part(server.substr(server.find("//") + 2));
}

/// The value of a cookie; "" if there is none.
std::string cookie_of(const std::string& header, const std::string& name) {
  for (std::size_t at = 0; at < header.size();) {
    const auto end = std::min(header.find(';', at), header.size());
    const auto begin = std::min(header.find_first_not_of(' ', at), end);
    const std::string part = header.substr(begin, end - begin);
    if (part.starts_with(name + "=")) {
      return part.substr(name.size() + 1);
    }
    at = end + 1;
  }
  return "";
}

} // namespace

Access::Access(std::string token, std::string server, std::string page)
    : token_(std::move(token)),
      server_(std::move(server)),
      page_(std::move(page)),
      cookie_("troupe_" + server_.substr(server_.rfind(':') + 1)) {}

bool Access::has_token(const Request& request) const {
  const std::string authorization = request.header("authorization");
  const std::string bearer = "Bearer ";
  if (authorization.starts_with(bearer)) {
    return equal_secrets(token_, std::string_view(authorization).substr(bearer.size()));
  }
  return equal_secrets(token_, cookie_of(request.header("cookie"), cookie_));
}

std::optional<Response> Access::refusal(const Request& request) const {
  if (!is_secure() && !is_loopback(request.header("host"), server_)) {
    return error_response(403, "the header Host must name 127.0.0.1 or localhost");
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!reads && request.method != "POST") {
    return error_response(405, "only GET, HEAD and POST are served");
  }
  if (reads && request.path == "/" && !request.parameter("token").empty()) {
    if (!equal_secrets(token_, request.parameter("token"))) {
      return error_response(401, "this token is another server's; use the address that `troupe "
                                     + page_ + "` printed last");
    }
    return Response{
        .status = 303,
        .type = "text/plain; charset=utf-8",
        .headers = {{"Location", "/"},
                    {"Set-Cookie", cookie_ + "=" + token_ + "; HttpOnly; SameSite=Strict; Path=/"
                                       + (is_secure() ? "; Secure" : "")}}};
  }
  if (!has_token(request)) {
    return error_response(401, "open the address with the token that `troupe " + page_
                                   + "` printed; programs send \"Authorization: Bearer TOKEN\"");
  }
  if (reads) {
    return std::nullopt;
  }
  const std::string origin = request.header("origin");
  const std::string scheme = is_secure() ? "https://" : "http://";
  if (request.header("x-troupe") != page_
      || (!origin.empty() && origin != scheme + request.header("host"))) {
    return error_response(403,
                          "a POST needs the header X-Troupe: " + page_ + " and no other Origin");
  }
  return std::nullopt;
}

} // namespace troupe::experiments::web
