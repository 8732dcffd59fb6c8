#pragma once

#include <map>
#include <string>
#include <vector>

namespace troupe::experiments::web {

/// A request as received. All its members are untrusted.
struct Request {
  std::string method = "GET";
  std::string path = "/";                          // decoded, without the query
  std::map<std::string, std::string> query = {};   // decoded
  std::map<std::string, std::string> headers = {}; // with names in lower case
  std::string body = {};

  /// The value of a header; "" if it is missing.
  std::string header(const std::string& name) const;
  std::string parameter(const std::string& name) const;
};

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// Fills in path and query from a request target. Returns false if an escape is malformed.
bool parse_target(const std::string& target, Request& request);

/// The response {"error": text}.
Response error_response(int status, const std::string& text);

} // namespace troupe::experiments::web
