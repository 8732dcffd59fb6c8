#include "experiments/dashboard/access.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace troupe::experiments::dashboard {
namespace {

constexpr std::size_t kTokenBytes = 32;
constexpr std::size_t kLeastLength = 32;
constexpr std::size_t kMostLength = 256;

bool is_token(const std::string& text) {
  return text.size() >= kLeastLength && text.size() <= kMostLength
         && text.find_first_not_of(
                "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_")
                == std::string::npos;
}

/// "127.0.0.1" of "127.0.0.1:8080", "[::1]" of "[::1]:8080".
std::string host_part(const std::string& host) {
  const auto end = host.starts_with('[') ? host.find(']') : std::string::npos;
  return host.substr(0, end != std::string::npos ? end + 1 : host.find(':'));
}

bool is_loopback(const std::string& host) {
  const std::string name = host_part(host);
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
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

std::string new_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error(std::string("the system gives no random bytes: ")
                             + std::strerror(errno));
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::string token_of(const std::filesystem::path& file) {
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made >= 0) {
    const std::string token = new_token();
    const std::string line = token + "\n";
    const bool whole = ::write(made, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    if (::close(made) != 0 || !whole) {
      throw std::runtime_error(file.string() + ": cannot be written");
    }
    return token;
  }
  struct stat about {};
  if (errno != EEXIST || ::stat(file.c_str(), &about) != 0) {
    throw std::invalid_argument(file.string() + ": cannot be made: " + std::strerror(errno)
                                + "; name a file in a folder that you may write to");
  }
  if ((about.st_mode & 077U) != 0 || about.st_uid != ::geteuid()) {
    throw std::invalid_argument(file.string()
                                + ": is another user's, or others can read it; chmod 600, or "
                                  "remove it for a new token");
  }
  std::ifstream in(file);
  std::string token;
  in >> token;
  if (!is_token(token)) {
    throw std::invalid_argument(file.string()
                                + ": must contain a token of 32 to 256 letters, digits, - and _; "
                                  "remove it for a new one");
  }
  return token;
}

bool equal_secrets(std::string_view one, std::string_view other) {
  unsigned difference = one.size() == other.size() ? 0 : 1;
  for (std::size_t i = 0; i < other.size(); ++i) {
    const char mine = one.empty() ? '\0' : one[i % one.size()];
    difference |= static_cast<unsigned char>(mine) ^ static_cast<unsigned char>(other[i]);
  }
  return difference == 0;
}

Access::Access(std::string token, std::uint16_t port)
    : token_(std::move(token)), port_(port), cookie_("troupe_" + std::to_string(port)) {}

bool Access::has_token(const Request& request) const {
  const std::string authorization = request.header("authorization");
  const std::string bearer = "Bearer ";
  if (authorization.starts_with(bearer)) {
    return equal_secrets(token_, std::string_view(authorization).substr(bearer.size()));
  }
  return equal_secrets(token_, cookie_of(request.header("cookie"), cookie_));
}

std::optional<Response> Access::refusal(const Request& request) const {
  if (!is_loopback(request.header("host"))) {
    return error_response(403, "the header Host must name 127.0.0.1 or localhost");
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!reads && request.method != "POST") {
    return error_response(405, "only GET, HEAD and POST are served");
  }
  if (reads && request.path == "/" && !request.parameter("token").empty()) {
    if (!equal_secrets(token_, request.parameter("token"))) {
      return error_response(401, "this token is another dashboard's; use the address that `troupe "
                                 "dashboard` printed last");
    }
    return Response{.status = 303,
                    .type = "text/plain; charset=utf-8",
                    .headers = {{"Location", "/"},
                                {"Set-Cookie",
                                 cookie_ + "=" + token_ + "; HttpOnly; SameSite=Strict; Path=/"}}};
  }
  if (!has_token(request)) {
    return error_response(401, "open the address with the token that `troupe dashboard` printed; "
                               "programs send \"Authorization: Bearer TOKEN\"");
  }
  if (reads) {
    return std::nullopt;
  }
  const std::string origin = request.header("origin");
  const std::string scheme = "http://";
  if (request.header("x-troupe") != "dashboard"
      || (!origin.empty() && origin != scheme + request.header("host"))) {
    return error_response(403, "a POST needs the header X-Troupe: dashboard and no other Origin");
  }
  return std::nullopt;
}

std::string Access::address() const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/?token=" + token_;
}

} // namespace troupe::experiments::dashboard
