#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <string>

#include "replay/objects/object_address.hpp"
#include "replay/objects/store_answers.hpp"
#include "replay/objects/store_options.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe::replay;
using troupe::error_of;
using troupe::has;

namespace {

using Variables = std::map<std::string, std::string>;

StoreOptions options_of(const Variables& variables) {
  return store_options([&](const char* name) -> std::optional<std::string> {
    if (name == std::string("AWS_EC2_METADATA_DISABLED"))
      return "true"; // there is no network
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Variables with_keys(Variables more) {
  more.insert({{"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"}, {"AWS_SECRET_ACCESS_KEY", "sEcReT/+"}});
  return more;
}

std::string refusal_of(const Variables& variables) {
  return error_of<std::invalid_argument>([&] { options_of(variables); });
}

} // namespace

TEST_CASE("An address in an object store is a bucket and a prefix") {
  CHECK(parse_object_address("s3://bucket", "x") == ObjectAddress{.bucket = "bucket"});
  CHECK(parse_object_address("s3://my.bucket-1/a/b c/", "x")
        == ObjectAddress{.bucket = "my.bucket-1", .key = "a/b c"});
  CHECK(text_of(below({.bucket = "one", .key = "a"}, "b/c")) == "s3://one/a/b/c");
  CHECK(text_of(below({.bucket = "one"}, "b")) == "s3://one/b");
  for (const char* text :
       {"", "bucket/a", "s3:/bucket", "s3://", "s3://ab", "s3://Bucket/a", "s3://-bucket",
        "s3://a..b", "s3://bucket/a//b", "s3://bucket/../a", "s3://bucket/a/./b",
        "s3://bucket/a\nb", "s3://bucket/a\\b", "s3://user:pass@bucket/a"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(parse_object_address(text, "checkpoint.store"),
                         doctest::Contains("checkpoint.store is"), std::invalid_argument);
  }
}

TEST_CASE("Keys, region and endpoint come from the AWS variables") {
  const auto plain = options_of(with_keys({}));
  CHECK(plain.endpoint == "https://s3.us-east-1.amazonaws.com");
  CHECK(plain.keys.access_key == "AKIDEXAMPLE");
  CHECK(plain.keys.secret_key == "sEcReT/+");
  const auto other = options_of(with_keys({{"AWS_REGION", "eu-west-3"},
                                           {"AWS_DEFAULT_REGION", "unused"},
                                           {"AWS_SESSION_TOKEN", "token=="},
                                           {"AWS_CA_BUNDLE", "/ca.pem"}}));
  CHECK(other.endpoint == "https://s3.eu-west-3.amazonaws.com");
  CHECK(other.keys.session_token == "token==");
  CHECK(other.ca_bundle == "/ca.pem");
  CHECK(options_of(with_keys({{"AWS_DEFAULT_REGION", "one"},
                              {"AWS_ENDPOINT_URL", "https://unused"},
                              {"AWS_ENDPOINT_URL_S3", "https://store.example:9000/"}}))
            .endpoint
        == "https://store.example:9000");
}

TEST_CASE("Keys come from a profile of the credentials file if no variable sets them") {
  troupe::TemporaryFolder folder;
  std::ofstream(folder / "credentials")
      << "# mine\n[default]\naws_access_key_id = one\n"
         "aws_secret_access_key=first\n\n[ other ]\r\n"
         "aws_access_key_id=two\r\naws_secret_access_key = a=b\r\n"
         "aws_session_token = t\r\n";
  Variables variables{{"AWS_SHARED_CREDENTIALS_FILE", (folder / "credentials").string()},
                      {"AWS_SESSION_TOKEN", "of other keys"}};
  CHECK(options_of(variables).keys.access_key == "one");
  CHECK(options_of(variables).keys.secret_key == "first");
  CHECK(options_of(variables).keys.session_token.empty());
  variables["AWS_PROFILE"] = "other";
  CHECK(options_of(variables).keys.access_key == "two");
  CHECK(options_of(variables).keys.secret_key == "a=b");
  CHECK(options_of(variables).keys.session_token == "t");
  variables["AWS_PROFILE"] = "missing";
  CHECK(has(refusal_of(variables), "has no keys of the profile missing"));
  std::filesystem::create_directory(folder / ".aws");
  std::filesystem::rename(folder / "credentials", folder / ".aws" / "credentials");
  CHECK(options_of({{"HOME", folder.path().string()}}).keys.access_key == "one");
}

TEST_CASE("A malformed key in a credentials file is reported with its name there and the file") {
  const troupe::TemporaryFolder folder;
  const std::string path = (folder / "credentials").string();
  std::ofstream(path) << "[default]\naws_access_key_id = one\n"
                         "aws_secret_access_key = first # of the cluster\naws_session_token =\n";
  const auto refused = refusal_of({{"AWS_SHARED_CREDENTIALS_FILE", path}});
  CHECK(has(refused, "aws_secret_access_key of the profile default in " + path));
  CHECK(has(refused, "copy it again"));
  CHECK(!has(refused, "first"));
}

TEST_CASE("Invalid options are refused with a remedy and without the secret") {
  CHECK(has(refusal_of({}), "set the two variables"));
  CHECK(has(refusal_of({{"AWS_ACCESS_KEY_ID", "a"}}), "set both"));
  CHECK(has(refusal_of(with_keys({{"AWS_REGION", "a b"}})), "AWS_REGION is \"a b\""));
  const auto endpoint = [](const char* text) {
    return refusal_of(with_keys({{"AWS_ENDPOINT_URL", text}}));
  };
  for (const char* text :
       {"store.example", "ftp://store", "https://", "https://a/path", "https://a?b", "https://a b",
        "https://a:0", "https://a:70000", "https://a:x"}) {
    CAPTURE(text);
    CHECK(has(endpoint(text), "AWS_ENDPOINT_URL is"));
  }
  CHECK(has(endpoint("http://store.example:9000"), "without TLS"));
  CHECK(has(endpoint("http://127.0.0.1.example"), "without TLS"));
  CHECK(endpoint("http://127.0.0.1:9000") == "");
  CHECK(endpoint("http://[::1]:9000") == "");
  CHECK(endpoint("https://[::1]") == "");
  CHECK(!has(endpoint("https://me:hunter2@store"), "hunter2"));
  const auto secret = refusal_of(
      {{"AWS_ACCESS_KEY_ID", "a"}, {"AWS_SECRET_ACCESS_KEY", "my secret\r\nx-header: 1"}});
  CHECK(has(secret, "AWS_SECRET_ACCESS_KEY is empty, too long"));
  CHECK(!has(secret, "my secret"));
}

TEST_CASE("Malformed responses of a store are refused") {
  const auto listing = [](const std::string& inside) {
    return parse_listing("<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                             + inside + "</ListBucketResult>",
                         2);
  };
  const std::string one = "<Contents><Key>a&amp;b</Key><Size>3</Size></Contents>";
  CHECK(listing(one).objects == std::vector<StoredObject>{{"a&b", 3}});
  CHECK(listing(one
                + "<IsTruncated>true</IsTruncated><NextContinuationToken>t"
                  "</NextContinuationToken>")
            .next
        == "t");
  std::string deep;
  for (int i = 0; i < 1000; ++i)
    deep += "<a>";
  for (const std::string& text :
       {one + one + one, std::string("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
        std::string("<Contents><Key>a</Key><Size>99999999999999999999</Size></Contents>"),
        std::string("<Contents><Key>a</Key></Contents>"),
        std::string("<IsTruncated>true</IsTruncated>"), std::string("<a>"), deep,
        "<Contents><Key>" + std::string(5000, 'k') + "</Key></Contents>", std::string("&x;")}) {
    CAPTURE(text.substr(0, 100));
    CHECK_THROWS_AS(listing(text), std::runtime_error);
  }
  CHECK_THROWS_AS(parse_listing("", 2), std::runtime_error);
  CHECK_THROWS_AS(parse_listing("<html/>", 2), std::runtime_error);
  CHECK_THROWS_AS(
      parse_listing("<!DOCTYPE l [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><ListBucketResult/>",
                    2),
      std::runtime_error);
  CHECK_THROWS_AS(parse_upload_id("<InitiateMultipartUploadResult/>"), std::runtime_error);
  CHECK(parse_error_code("<Error><Code>NoSuchKey</Code></Error>") == "NoSuchKey");
  CHECK(parse_error_code("<Error><Code>a b\n</Code></Error>").empty());
  CHECK(parse_error_code("not xml").empty());
}
