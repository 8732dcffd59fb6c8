#include <doctest/doctest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "replay/objects/key_answers.hpp"
#include "replay/objects/key_sources.hpp"
#include "replay/objects/store_answers.hpp"
#include "replay/objects/store_error.hpp"
#include "tests/text.hpp"

using namespace troupe::replay;
using std::chrono::minutes;
using std::chrono::seconds;
using troupe::error_of;
using troupe::has;

namespace {

using Variables = std::map<std::string, std::string>;

std::optional<KeySource> source_of(const Variables& variables) {
  return key_source(
      [&](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      "eu-west-3");
}

std::string refusal_of(const Variables& variables) {
  return error_of<std::invalid_argument>([&] { source_of(variables); });
}

const WallTime kNow = WallTime(seconds(1'795'255'200));

StoreKeys keys_until(WallTime expires, const std::string& name) {
  return {.access_key = name, .secret_key = "s", .session_token = "t", .expires = expires};
}

std::string document(const std::string& more) {
  return R"({"AccessKeyId": "one", "SecretAccessKey": "two")" + more + "}";
}

std::string assumed(const std::string& inside) {
  return "<AssumeRoleWithWebIdentityResponse "
         "xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult>"
         "<Credentials>"
         + inside
         + "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
}

} // namespace

TEST_CASE(
    "A pod's web identity comes first, a container's agent second and an instance's role last") {
  const Variables identity{{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"},
                           {"AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/trainer"}};
  const Variables agent{{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/x"}};
  Variables all = identity;
  all.insert(agent.begin(), agent.end());
  CHECK(source_of(all)->kind == KeySource::Kind::web_identity);
  CHECK(source_of(all)->url == "https://sts.eu-west-3.amazonaws.com");
  CHECK(source_of(all)->session == "troupe");
  all["AWS_ENDPOINT_URL"] = "https://minio.example:9000/";
  CHECK(source_of(all)->url == "https://minio.example:9000");
  all["AWS_ENDPOINT_URL_STS"] = "https://sts.example";
  CHECK(source_of(all)->url == "https://sts.example");
  CHECK(source_of(agent)->kind == KeySource::Kind::container);
  CHECK(source_of(agent)->url == "http://169.254.170.2/v2/credentials/x");
  CHECK(source_of({})->kind == KeySource::Kind::instance);
  CHECK(source_of({})->url == "http://169.254.169.254");
  CHECK(source_of({{"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6"}})->url
        == "http://[fd00:ec2::254]");
  CHECK_FALSE(source_of({{"AWS_EC2_METADATA_DISABLED", "True"}}));
}

TEST_CASE("Tokens are sent only over TLS, to this host or to the addresses of agents") {
  const auto agent = [](const char* url) {
    return refusal_of({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url}});
  };
  for (const char* url :
       {"https://keys.example/a?b=c", "http://127.0.0.1:8080/a", "http://localhost/",
        "http://[::1]/a", "http://169.254.170.2/a", "http://169.254.170.23/v1/credentials",
        "http://[fd00:ec2::23]/v1/credentials"})
    CHECK(agent(url) == "");
  for (const char* url : {"http://169.254.169.254/a", "http://keys.example/a", "ftp://127.0.0.1/a",
                          "http://127.0.0.1@keys.example/a", "http://127.0.0.1#.keys.example/a",
                          "http://127.0.0.1?.keys.example", "127.0.0.1", "http://", ""}) {
    CAPTURE(url);
    CHECK(has(agent(url), "AWS_CONTAINER_CREDENTIALS_FULL_URI"));
  }
  CHECK(has(agent("http://127.0.0.1/a b"), "space"));
  CHECK(has(refusal_of({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@keys.example/"}}), "slash"));
  CHECK(has(refusal_of({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://keys.example"}}),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT is"));
  Variables identity{{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}};
  CHECK(has(refusal_of(identity), "AWS_ROLE_ARN is not"));
  identity["AWS_ROLE_ARN"] = "trainer";
  CHECK(has(refusal_of(identity), "arn:aws:iam::"));
  identity["AWS_ROLE_ARN"] = "arn:aws:iam::123456789012:role/trainer";
  CHECK(refusal_of(identity) == "");
  identity["AWS_ENDPOINT_URL_STS"] = "http://sts.example";
  CHECK(has(refusal_of(identity), "AWS_ENDPOINT_URL_STS is"));
  identity["AWS_ENDPOINT_URL_STS"] = "http://127.0.0.1:9000";
  identity["AWS_ROLE_SESSION_NAME"] = "a b";
  CHECK(has(refusal_of(identity), "AWS_ROLE_SESSION_NAME"));
}

TEST_CASE("Keys are fetched once, and again five minutes before they expire") {
  WallTime now = kNow;
  int fetched = 0;
  TemporaryKeys keys(
      [&](const std::stop_token&) {
        ++fetched;
        return keys_until(now + minutes(60), std::to_string(fetched));
      },
      [&] { return now; });
  CHECK(fetched == 0);
  CHECK(keys.current().access_key == "1");
  now += minutes(54);
  CHECK(keys.current().access_key == "1");
  now += minutes(1);
  CHECK(keys.current().access_key == "2");
  CHECK(keys.forget(keys_until(now + minutes(60), "another")));
  CHECK(keys.current().access_key == "2");
  CHECK(keys.forget(keys.current()));
  CHECK(keys.current().access_key == "3");
  CHECK_FALSE(keys.forget({.access_key = "a", .secret_key = "b"}));
}

TEST_CASE("An unavailable service is asked once a minute until the previous keys have expired") {
  WallTime now = kNow;
  int asked = 0;
  TemporaryKeys keys(
      [&](const std::stop_token&) {
        if (++asked > 1)
          throw StoreError("away");
        return keys_until(kNow + minutes(10), "one");
      },
      [&] { return now; });
  CHECK(keys.current().access_key == "one");
  now = kNow + minutes(6);
  CHECK(keys.current().access_key == "one");
  CHECK(keys.current().access_key == "one");
  CHECK(asked == 2);
  now += seconds(60);
  CHECK(keys.current().access_key == "one");
  CHECK(asked == 3);
  now = kNow + minutes(10);
  CHECK_THROWS_WITH_AS(keys.current(), "away", StoreError);
  TemporaryKeys late([&](const std::stop_token&) { return keys_until(now, "x"); },
                     [&] { return now; });
  CHECK_THROWS_WITH_AS(late.current(), doctest::Contains("set this host's clock"), StoreError);
}

TEST_CASE("Key documents are parsed, and errors do not quote their contents") {
  const auto plain = parse_key_document(document(""));
  CHECK(plain.secret_key == "two");
  CHECK(plain.expires == WallTime::max());
  const auto whole = parse_key_document(
      document(R"(, "Code": "Success", "Token": "three", "Expiration": "2026-11-21T10:00:00.5Z")"));
  CHECK(whole.session_token == "three");
  CHECK(whole.expires == kNow);
  for (const std::string& text :
       {std::string("[]"), std::string("{"), std::string(""), document(R"(, "Token": "hid den")"),
        document(R"(, "Code": "Failed")"), document(R"(, "Token": 7)"),
        document(R"(, "Expiration": "hidden")"),
        document(R"(, "Expiration": "2026-13-21T10:00:00Z")"),
        document(R"(, "Expiration": "2026-11-21T10:00:00-08:00")"),
        document(R"(, "x": ")" + std::string(70'000, 'x') + "\""), std::string(60'000, '[')}) {
    CAPTURE(text.substr(0, 200));
    try {
      parse_key_document(text);
      FAIL("was accepted");
    } catch (const std::runtime_error& refused) {
      CHECK_FALSE(has(refused.what(), "hid"));
    }
  }
  const auto role = parse_assumed_role(assumed(
      "<AccessKeyId>a</AccessKeyId><SecretAccessKey>b</SecretAccessKey><SessionToken>"
      + std::string(5000, 't') + "</SessionToken><Expiration>2026-11-21T10:00:00Z</Expiration>"));
  CHECK(role.session_token.size() == 5000);
  CHECK(role.expires == kNow);
  CHECK_THROWS_AS(parse_assumed_role(assumed("<AccessKeyId>a</AccessKeyId>")), std::runtime_error);
  CHECK_THROWS_AS(parse_assumed_role("<html>"), std::runtime_error);
  CHECK(parse_error_code("<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>")
        == "AccessDenied");
}
