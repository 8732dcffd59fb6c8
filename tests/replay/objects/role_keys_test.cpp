// Temporary keys of roles, from moto's Security Token Service, S3 and instance metadata. The
// credential agents of containers cannot run here; a scripted server answers with their documented
// responses.
#include <doctest/doctest.h>

#include <fstream>
#include <map>

#include "replay/objects/key_sources.hpp"
#include "replay/objects/object_store.hpp"
#include "replay/objects/store_error.hpp"
#include "tests/replay/objects/moto.hpp"
#include "tests/replay/objects/scripted_server.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe::replay;
using troupe::error_of;
using troupe::has;
using troupe::TemporaryFolder;

namespace {

using Variables = std::map<std::string, std::string>;

StoreOptions options_of(const Variables& variables) {
  auto options = store_options([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
  options.attempts = 2;
  options.first_pause = std::chrono::milliseconds(1);
  return options;
}

std::string refusal_of(const Variables& variables) {
  return error_of([&] { options_of(variables); });
}

const std::string kDocument =
    R"({"AccessKeyId": "one", "SecretAccessKey": "two", "Token": "three", "Expiration": "2199-01-01T00:00:00Z"})";
const std::string kWhole = "whole";
const std::string kListing = "<ListBucketResult></ListBucketResult>";

} // namespace

TEST_CASE("A pod with a web identity gets its role's keys over TLS and stores objects with them") {
  const TemporaryFolder folder;
  const Moto moto(folder);
  if (!moto.runs())
    return;
  std::ofstream(folder / "token") << "header.claims.signature\n";
  Variables pod{{"AWS_WEB_IDENTITY_TOKEN_FILE", folder / "token"},
                {"AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/trainer"},
                {"AWS_ENDPOINT_URL_STS", moto.secured},
                {"AWS_ENDPOINT_URL", moto.plain},
                {"AWS_CA_BUNDLE", folder / "certificate.pem"}};
  auto options = options_of(pod);
  const ObjectAddress address{.bucket = "bucket", .key = "a/b c"};
  ObjectStore(options).put_bytes(address, std::as_bytes(std::span(kWhole)));
  CHECK(ObjectStore(options).get_bytes(address, 10) == kWhole);
  CHECK(ObjectStore(options).list({.bucket = "bucket"}).size() == 1);

  auto other = options;
  other.keys = options.temporary->current();
  other.temporary = nullptr;
  CHECK(ObjectStore(other).get_bytes(address, 10) == kWhole);
  other.keys.session_token.back() ^= 1; // moto checks session tokens
  CHECK_THROWS_AS(ObjectStore(other).get_bytes(address, 10), StoreError);

  pod.erase("AWS_CA_BUNDLE");
  CHECK(has(refusal_of(pod), "certificate"));
  pod["AWS_CA_BUNDLE"] = folder / "certificate.pem";
  pod["AWS_WEB_IDENTITY_TOKEN_FILE"] = folder / "none";
  CHECK(has(refusal_of(pod), "none has no token, or cannot be read"));
}

TEST_CASE("A failed renewal is reported once, and the previous keys still work") {
  const TemporaryFolder folder;
  const Moto moto(folder);
  if (!moto.runs())
    return;
  std::ofstream(folder / "token") << "header.claims.signature\n";
  KeySource source{.kind = KeySource::Kind::web_identity,
                   .url = moto.secured,
                   .role = "arn:aws:iam::123456789012:role/trainer",
                   .session = "troupe",
                   .token_file = folder / "token",
                   .ca_bundle = folder / "certificate.pem"};
  HttpClient client;
  WallTime now; // long before the keys expire
  StoreOptions options{
      .endpoint = moto.plain,
      .temporary = std::make_shared<TemporaryKeys>(
          [&](const std::stop_token& stop) { return fetch_keys(source, client, stop); },
          [&] { return now; })};
  const ObjectAddress address{.bucket = "bucket", .key = "a"};
  ObjectStore store(options);
  store.put_bytes(address, std::as_bytes(std::span(kWhole)));
  CHECK(options.temporary->news().empty());

  source.url = moto.plain; // answers 500, because moto expects a signature here
  now = options.temporary->current().expires - std::chrono::minutes(4);
  CHECK(store.get_bytes(address, 10) == kWhole);
  const std::string news = options.temporary->news();
  CAPTURE(news);
  CHECK(has(news, "a renewal of the object store's keys failed (1 in all): the keys of "
                  "AWS_ROLE_ARN arn:aws:iam::123456789012:role/trainer cannot be obtained from "
                      + moto.plain + ": it sent 500"));
  CHECK(has(news, "; the previous keys are valid until 20"));
  now += std::chrono::minutes(1);
  CHECK(store.get_bytes(address, 10) == kWhole);
  CHECK(options.temporary->news().empty());

  source.url = moto.secured;
  now += std::chrono::minutes(1);
  CHECK(store.get_bytes(address, 10) == kWhole);
  CHECK(has(options.temporary->news(), "renewed after 2 failed attempts (2 in all)"));
}

TEST_CASE("An instance's keys come from its metadata service") {
  const TemporaryFolder folder;
  const Moto moto(folder);
  if (!moto.runs())
    return;
  const auto options = options_of({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", moto.plain + "/"}});
  const StoreKeys keys = options.temporary->current();
  CHECK(keys.access_key == "test-key");
  CHECK(keys.secret_key == "test-secret-key");
  CHECK(keys.session_token == "test-session-token");
  CHECK(keys.expires < WallTime::max());
}

TEST_CASE("Only version 2 of the metadata service is used, and a missing role is explained") {
  Scripted second(
      {answer("200 OK", "session"), answer("200 OK", "my-role\n"), answer("200 OK", kDocument)});
  CHECK(options_of({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", second.url()}})
            .temporary->current()
            .session_token
        == "three");
  REQUIRE(second.requests().size() == 3);
  CHECK(has(second.requests()[0], "PUT /latest/api/token HTTP/1.1"));
  CHECK(has(second.requests()[0], "X-aws-ec2-metadata-token-ttl-seconds: 300"));
  CHECK(has(second.requests()[1], "GET /latest/meta-data/iam/security-credentials/ HTTP/1.1"));
  CHECK(has(second.requests()[1], "X-aws-ec2-metadata-token: session"));
  CHECK(has(second.requests()[2], "/security-credentials/my-role HTTP/1.1"));
  Scripted first({answer("404 Not Found", "")});
  const std::string none = refusal_of({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", first.url()}});
  CHECK(has(none, "no credentials for the object store"));
  CHECK(has(none, "it sent 404"));
  Scripted strange(
      {answer("200 OK", "session"), answer("200 OK", "../../other"), answer("200 OK", kDocument)});
  CHECK(has(refusal_of({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", strange.url()}}), "has no role"));
  CHECK(strange.requests().size() == 2);
}

TEST_CASE(
    "A container's agent gets the token from its file, which is read again for each request") {
  const TemporaryFolder folder;
  Scripted agent(
      {answer("200 OK", kDocument), answer("503 Busy", ""), answer("200 OK", kDocument)});
  std::ofstream(folder / "token") << "Basic first\n";
  const auto options = options_of({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.url() + "/v1/keys"},
                                   {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", folder / "token"},
                                   {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "unused"}});
  std::ofstream(folder / "token") << "second";
  CHECK(options.temporary->forget(options.temporary->current()));
  CHECK(options.temporary->current().access_key == "one");
  REQUIRE(agent.requests().size() == 3);
  CHECK(has(agent.requests()[0], "GET /v1/keys HTTP/1.1"));
  CHECK(has(agent.requests()[0], "Authorization: Basic first\r\n"));
  CHECK(has(agent.requests()[2], "Authorization: second\r\n"));
  Scripted hostile({answer("200 OK", std::string(1 << 20, '['))});
  const Variables here{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", hostile.url()},
                       {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "hidden\r\nHost: other"}};
  CHECK(has(refusal_of(here), "more than one line"));
  CHECK_FALSE(has(refusal_of(here), "hidden"));
  CHECK(has(refusal_of({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", hostile.url()}}),
            "cannot be obtained"));
}

TEST_CASE("Keys that the store reports as expired are replaced, and the request is sent again") {
  Scripted agent({answer("200 OK", kDocument),
                  answer("200 OK", R"({"AccessKeyId": "fresh", "SecretAccessKey": "two"})")});
  Scripted store({answer("400 Bad Request", "<Error><Code>ExpiredToken</Code></Error>"),
                  answer("200 OK", kListing),
                  answer("400 Bad Request", "<Error><Code>ExpiredToken</Code></Error>")});
  const auto options = options_of(
      {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.url()}, {"AWS_ENDPOINT_URL", store.url()}});
  CHECK(ObjectStore(options).list({.bucket = "bucket"}).empty());
  CHECK_THROWS_WITH_AS(ObjectStore(options).list({.bucket = "bucket"}),
                       doctest::Contains("ExpiredToken"), StoreError);
  CHECK(agent.requests().size() == 2);
  REQUIRE(store.requests().size() == 3);
  CHECK(has(store.requests()[0], "x-amz-security-token: three"));
  CHECK(has(store.requests()[1], "Credential=fresh/"));
}
