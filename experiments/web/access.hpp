#pragma once

#include <optional>
#include <string>

#include "experiments/web/http.hpp"

namespace troupe::experiments::web {

/// Who may ask a page's server for what. Any thread.
///
/// Every request needs the token: in a cookie, as "Authorization: Bearer TOKEN", or once as
/// /?token=TOKEN, which sets the cookie and redirects. The header Host must name the loopback
/// interface, so that another site's name that was bound to 127.0.0.1 gets nothing; over TLS the
/// certificate sees to that. What is not GET or HEAD must have the header X-Troupe with the page's
/// name, which no page of another site can send, and Origin, if there is one, must be the page's
/// own.
class Access {
public:
  /// `server`: HttpServer::address(); `page`: the command that serves it, "dashboard".
  Access(std::string token, std::string server, std::string page);

  /// The answer if the request must not get one from the page's server.
  std::optional<Response> refusal(const Request& request) const;

  /// "http://127.0.0.1:PORT/?token=TOKEN"
  std::string address() const { return server_ + "/?token=" + token_; }

private:
  bool has_token(const Request& request) const;
  bool is_secure() const { return server_.starts_with("https:"); }

  std::string token_;
  std::string server_;
  std::string page_;
  std::string cookie_; // its name: browsers share cookies between ports
};

} // namespace troupe::experiments::web
