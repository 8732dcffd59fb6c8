#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "replay/objects/signed_requests.hpp"
#include "replay/objects/store_error.hpp"
#include "tests/replay/objects/scripted_server.hpp"
#include "tests/text.hpp"

using namespace troupe::replay;
using troupe::error_of;
using troupe::has;

namespace {

const StoreRequest kGet{.method = "GET", .bucket = "bucket", .key = "a b", .most_answered = 10};

std::string failure_of(Scripted& server, const std::stop_token& stop = {}) {
  std::string failure =
      error_of<StoreError>([&] { SignedRequests(server.options()).send(kGet, stop); });
  CHECK_FALSE(has(failure, "hidden"));
  return failure;
}

} // namespace

TEST_CASE("Overload and lost connections are retried a limited number of times") {
  Scripted late({answer("400 Bad", "<Error><Code>RequestTimeout</Code></Error>"),
                 answer("429 Too Many", ""), answer("200 OK", "late")});
  CHECK(SignedRequests(late.options()).send(kGet).body == "late");
  Scripted twice({answer("503 Slow Down", ""), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nha",
                  answer("200 OK", "whole")});
  CHECK(SignedRequests(twice.options()).send(kGet).body == "whole");
  CHECK(twice.requests().size() == 3);
  CHECK(has(twice.requests()[0], "GET /bucket/a%20b HTTP/1.1"));
  CHECK(has(twice.requests()[0], "Authorization: AWS4-HMAC-SHA256 Credential=key/"));
  Scripted always(
      std::vector<std::string>(5, answer("500 x", "<Error><Code>InternalError</Code></Error>")));
  CHECK(has(failure_of(always), "got 500 InternalError (attempt 3)"));
  CHECK(always.requests().size() == 3);
}

TEST_CASE("Permanent errors are not retried") {
  Scripted refused(
      {answer("403 Forbidden", "<Error><Code>AccessDenied</Code></Error>"), answer("200 OK", "")});
  CHECK(has(failure_of(refused), "403 AccessDenied"));
  CHECK(refused.requests().size() == 1);
}

TEST_CASE("A redirect is refused, and the error names the region if the store does") {
  Scripted elsewhere({answer("301 Moved", "",
                             "Location: http://127.0.0.1:1/\r\nx-amz-bucket-region: eu-west-3\r\n"),
                      answer("200 OK", "")});
  CHECK(has(failure_of(elsewhere), "redirects are not followed; set AWS_REGION to eu-west-3"));
  CHECK(elsewhere.requests().size() == 1);
}

TEST_CASE("A silent, oversized or non-HTTP response costs bounded time and memory") {
  Scripted silent({"silence", "silence", "silence"});
  CHECK(has(failure_of(silent), "failed (attempt 3)"));
  Scripted flood({answer("200 OK", std::string(11, 'x'))});
  CHECK(has(failure_of(flood), "more than 10 bytes"));
  Scripted explains({answer("400 Bad", std::string(1 << 20, 'x'))});
  CHECK(has(failure_of(explains), "got 400 from"));
  Scripted garbage({"\x16\x03\x01 garbage\r\n\r\n"});
  CHECK(has(failure_of(garbage), "failed"));
}

TEST_CASE("A request that is asked to stop ends") {
  Scripted silent({"silence", "silence"});
  std::stop_source stop;
  stop.request_stop();
  CHECK(has(failure_of(silent, stop.get_token()), "was stopped"));
}
