#include <doctest/doctest.h>

#include <map>

#include "experiments/web/access.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using namespace troupe::experiments::web;

namespace {

const std::string kToken(64, 'a');
const Access kAccess(kToken, "http://127.0.0.1:8800", "dashboard");

Request request(const std::string& method, std::map<std::string, std::string> headers) {
  headers.try_emplace("host", "127.0.0.1:8800");
  return {.method = method, .path = "/api/runs", .headers = std::move(headers)};
}

int status(const Request& asked) {
  const auto refusal = kAccess.refusal(asked);
  return refusal ? refusal->status : 200;
}

} // namespace

TEST_CASE("The printed address sets a cookie that grants access") {
  CHECK(kAccess.address() == "http://127.0.0.1:8800/?token=" + kToken);
  Request first{.query = {{"token", kToken}}, .headers = {{"host", "127.0.0.1:8800"}}};
  const auto redirect = kAccess.refusal(first);
  REQUIRE(redirect);
  CHECK(redirect->status == 303);
  REQUIRE(redirect->headers.size() == 2);
  CHECK(redirect->headers[0].second == "/"); // the token is removed from the address
  const std::string cookie = redirect->headers[1].second;
  CHECK(has(cookie, "; HttpOnly; SameSite=Strict"));
  CHECK(status(request("GET", {{"cookie", "other=1; " + cookie.substr(0, cookie.find(';'))}}))
        == 200);
}

TEST_CASE("Requests without the right token are refused") {
  CHECK(status(request("GET", {})) == 401);
  CHECK(status(request("GET", {{"cookie", "troupe_8800=" + std::string(64, 'b')}})) == 401);
  CHECK(status(request("GET", {{"cookie", "troupe_8801=" + kToken}})) == 401);
  CHECK(status(request("GET", {{"authorization", "Bearer "}})) == 401);
  CHECK(status(request("GET", {{"authorization", "Bearer " + kToken + "a"}})) == 401);
  CHECK(status(request("GET", {{"authorization", "Bearer " + kToken}})) == 200);
  CHECK(status(request("DELETE", {{"authorization", "Bearer " + kToken}})) == 405);
  const Request wrong{.query = {{"token", "guess"}}, .headers = {{"host", "localhost:8800"}}};
  CHECK(status(wrong) == 401);
}

TEST_CASE("Requests for an unknown host name are refused even with the token") {
  const std::pair<std::string, std::string> bearer = {"authorization", "Bearer " + kToken};
  CHECK(status(request("GET", {bearer, {"host", "rebound.example:8800"}})) == 403);
  CHECK(status(request("GET", {bearer, {"host", "127.0.0.1.rebound.example"}})) == 403);
  CHECK(status(request("GET", {bearer, {"host", ""}})) == 403);
  CHECK(status(request("GET", {bearer, {"host", "localhost:9999"}})) == 200); // of a tunnel
  CHECK(status(request("GET", {bearer, {"host", "[::1]:8800"}})) == 200);
}

TEST_CASE("The server's own address is accepted as the host, also if it is not 127.0.0.1") {
  const Access access(kToken, "http://127.0.0.2:8800", "dashboard");
  Request asked =
      request("GET", {{"authorization", "Bearer " + kToken}, {"host", "127.0.0.2:8800"}});
  CHECK_FALSE(access.refusal(asked).has_value());
  asked.headers["host"] = "127.0.0.3:8800";
  REQUIRE(access.refusal(asked).has_value());
  CHECK(access.refusal(asked)->status == 403);
}

TEST_CASE("A page of another site cannot post, although the browser sends the cookie") {
  const std::string cookie = "troupe_8800=" + kToken;
  CHECK(status(request("POST", {{"cookie", cookie}})) == 403);
  CHECK(status(request("POST", {{"cookie", cookie}, {"x-troupe", "dashboard"}})) == 200);
  CHECK(status(request(
            "POST",
            {{"cookie", cookie}, {"x-troupe", "dashboard"}, {"origin", "http://127.0.0.1:8800"}}))
        == 200);
  CHECK(status(request(
            "POST",
            {{"cookie", cookie}, {"x-troupe", "dashboard"}, {"origin", "http://other.example"}}))
        == 403);
  CHECK(status(request("POST", {{"cookie", cookie}, {"x-troupe", "dashboard"}, {"origin", "null"}}))
        == 403);
}

TEST_CASE("Over TLS, the certificate's host name is used, and the cookie is sent over TLS only") {
  const Access secure(kToken, "https://cluster.example:8800", "dashboard");
  CHECK(secure.address() == "https://cluster.example:8800/?token=" + kToken);
  const std::string host = "cluster.example:8800";
  const auto redirect = secure.refusal({.query = {{"token", kToken}}, .headers = {{"host", host}}});
  REQUIRE(redirect);
  CHECK(redirect->status == 303);
  CHECK(has(redirect->headers[1].second, "; Secure"));
  const std::string cookie = "troupe_8800=" + kToken;
  const auto post = [&](const std::string& origin) {
    return secure.refusal(
        {.method = "POST",
         .path = "/api/stop",
         .headers = {
             {"host", host}, {"cookie", cookie}, {"x-troupe", "dashboard"}, {"origin", origin}}});
  };
  CHECK_FALSE(post("https://cluster.example:8800"));
  CHECK(post("http://cluster.example:8800"));
  CHECK(secure.refusal({.path = "/api/runs", .headers = {{"host", host}}})->status == 401);
}
