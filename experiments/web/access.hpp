#pragma once

#include <optional>
#include <string>

#include "experiments/web/http.hpp"

namespace troupe::experiments::web {

/// Decides which requests the server of a page answers. May be used from any thread.
///
/// Every request needs the token: in a cookie, as "Authorization: Bearer TOKEN", or once as
/// ?token=TOKEN, which sets the cookie and redirects. The header Host must name the loopback
/// interface, so that a page from another name that resolves to 127.0.0.1 gets no answer; over TLS
/// the certificate ensures this. Requests other than GET and HEAD must have the header X-Troupe
/// with the page's name, which no page of another site can send, and the header Origin, if present,
/// must be the page's own.
class Access {
public:
  /// `server` is HttpServer::address(); `page` is the command that serves the page, such as
  /// "dashboard".
  Access(std::string token, std::string server, std::string page);

  /// The answer to a request that must not reach the page's server; nothing if it may.
  std::optional<Response> refusal(const Request& request) const;

  /// "http://127.0.0.1:PORT/?token=TOKEN"
  std::string address() const { return server_ + "/?token=" + token_; }

private:
  bool has_token(const Request& request) const;
  bool is_secure() const { return server_.starts_with("https:"); }

  std::string token_;
  std::string server_;
  std::string page_;
  std::string cookie_; // name of the cookie; specific, because browsers share cookies between ports
};

} // namespace troupe::experiments::web
