#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "replay/objects/folder_copies.hpp"
#include "replay/objects/object_store.hpp"
#include "replay/objects/store_error.hpp"
#include "tests/replay/objects/swift.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe::replay;
using troupe::has;
using troupe::read_text;
using troupe::TemporaryFolder;

namespace {

ObjectAddress at(const std::string& key) {
  return {.bucket = "bucket", .key = key};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 1;
  for (char& c : text)
    c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

template <class Call>
StoreError error_of(Call call) {
  try {
    call();
  } catch (const StoreError& e) {
    return e;
  }
  FAIL("no StoreError");
  return StoreError("");
}

} // namespace

TEST_CASE("An S3 server stores objects under any name") {
  TemporaryFolder folder;
  const Swift swift(folder / "swift");
  if (!swift.runs())
    return;
  ObjectStore store(swift.options());
  for (const std::string key :
       {"plain", "with space+plus", "a/b=c&d?e#f%41", "~user/äöü", "(x)'!*;:@$,"}) {
    CAPTURE(key);
    store.put_bytes(at(key), bytes_of(key));
    CHECK(store.get_bytes(at(key), 100) == key);
    CHECK(store.size(at(key)) == static_cast<std::int64_t>(key.size()));
    store.remove(at(key));
    CHECK(error_of([&] { store.get_bytes(at(key), 100); }).status() == 404);
    store.remove(at(key)); // not an error
  }
  StoreOptions temporary = swift.options();
  temporary.keys.session_token = "signed/with+the=others";
  ObjectStore(temporary).put_bytes(at("token"), bytes_of("x"));
  write(folder / "empty", "");
  store.put_file(at("empty"), folder / "empty");
  store.get_file(at("empty"), folder / "copy");
  CHECK(std::filesystem::file_size(folder / "copy") == 0);
  store.put_bytes(at("large"), bytes_of(pattern(1000)));
  CHECK(has(error_of([&] { store.get_bytes(at("large"), 999); }).what(), "more than 999 bytes"));
}

TEST_CASE("A listing continues over its pages and stays within its folder") {
  TemporaryFolder folder;
  const Swift swift(folder / "swift");
  if (!swift.runs())
    return;
  StoreOptions options = swift.options();
  options.page_keys = 3;
  ObjectStore store(options);
  std::vector<StoredObject> expected;
  for (int i = 0; i < 10; ++i) {
    expected.push_back({"runs/one/" + std::to_string(i) + "/x & <y>", i});
    store.put_bytes(at(expected.back().key), bytes_of(pattern(static_cast<std::size_t>(i))));
  }
  store.put_bytes(at("runs/one-more/other"), bytes_of("z"));
  auto listed = store.list(at("runs/one"));
  for (StoredObject& object : listed) {
    CHECK(object.etag.size() >= 32);
    object.etag.clear();
  }
  CHECK(listed == expected);
  CHECK(store.folders(at("runs")) == std::vector<std::string>{"one-more", "one"});
  CHECK(store.folders(at("runs/one")).size() == 10);
  CHECK(store.list(at("nothing")).empty());
  CHECK(has(error_of([&] { store.list(at("runs/one"), 9); }).what(), "does not end"));
}

TEST_CASE("A file larger than a part is uploaded and downloaded in parts, byte for byte") {
  TemporaryFolder folder;
  const Swift swift(folder / "swift");
  if (!swift.runs())
    return;
  ObjectStore store(swift.options());
  const std::string text = pattern((std::size_t{11} << 20) + 7);
  write(folder / "file", text);
  std::vector<std::int64_t> sent;
  store.put_file(at("in/parts"), folder / "file", [&](std::int64_t n) { sent.push_back(n); });
  CHECK(sent == std::vector<std::int64_t>{5 << 20, 5 << 20, (1 << 20) + 7});
  CHECK(store.size(at("in/parts")) == static_cast<std::int64_t>(text.size()));
  store.get_file(at("in/parts"), folder / "copy");
  CHECK(read_text(folder / "copy") == text);
}

TEST_CASE(
    "A wrong key, a missing bucket and an unreachable store are reported without the secret") {
  TemporaryFolder folder;
  Swift swift(folder / "swift");
  if (!swift.runs())
    return;
  StoreOptions wrong = swift.options();
  wrong.keys.secret_key = "not-the-secret";
  const auto refused = error_of([&] { ObjectStore(wrong).put_bytes(at("x"), bytes_of("y")); });
  CHECK(refused.status() == 403);
  CHECK(refused.code() == "SignatureDoesNotMatch");
  CHECK(has(refused.what(), "AWS_SECRET_ACCESS_KEY"));
  CHECK(!has(refused.what(), "not-the-secret"));
  ObjectStore store(swift.options());
  const auto missing = error_of([&] { store.list({.bucket = "nowhere"}); });
  CHECK(missing.code() == "NoSuchBucket");
  CHECK(has(missing.what(), "create the bucket"));
  swift.kill();
  const auto away = error_of([&] { store.list(at("")); });
  CHECK(has(away.what(), "attempt 2"));
  CHECK(has(away.what(), "AWS_ENDPOINT_URL"));
  store.stop();
  CHECK(has(error_of([&] { store.list(at("")); }).what(), "was stopped"));
}

TEST_CASE("A store with an untrusted certificate gets no request") {
  TemporaryFolder folder;
  const Swift swift(folder / "swift", true);
  if (!swift.runs())
    return;
  StoreOptions options = swift.options();
  CHECK(has(error_of([&] { ObjectStore(options).list(at("")); }).what(), "certificate"));
  CHECK(read_text(folder / "swift" / "requests.log").find("GET /bucket") == std::string::npos);
  options.ca_bundle = folder / "swift" / "certificate.pem";
  ObjectStore store(options);
  for (int i = 0; i < 2; ++i) // the server logs a request after its answer, before the next one
    CHECK(store.list(at("")).empty());
  CHECK(has(read_text(folder / "swift" / "requests.log"), "GET /bucket"));
}

TEST_CASE("A folder in the store is complete only with its last file") {
  TemporaryFolder folder;
  Swift swift(folder / "swift");
  if (!swift.runs())
    return;
  write(folder / "7" / "manifest.json", "{}");
  write(folder / "7" / "z" / "data", pattern(2000));
  write(folder / "7" / "z" / "large", pattern(std::size_t{11} << 20));
  {
    ObjectStore store(swift.options());
    std::int64_t sent = 0;
    CHECK_THROWS_AS(upload_folder(store, folder / "7", at("run/7"), "manifest.json",
                                  [&](std::int64_t bytes) {
                                    sent += bytes;
                                    if (sent > 5 << 20) // half-way through the large file
                                      swift.kill();
                                  }),
                    StoreError);
    CHECK(sent < 11 << 20);
  }
  const Swift again(folder / "swift");
  ObjectStore store(again.options());
  const auto stored = store.list(at("run/7"));
  REQUIRE(stored.size() == 1);
  CHECK(stored[0].key == "run/7/z/data");
  CHECK(stored[0].bytes == 2000);
  CHECK(has(error_of([&] {
              download_folder(store, at("run/7"), folder / "copy", "manifest.json");
            }).what(),
            "not complete"));
  CHECK(!std::filesystem::exists(folder / "copy"));

  store.put_bytes(at("run/7/left"), bytes_of("of an earlier one"));
  upload_folder(store, folder / "7", at("run/7"), "manifest.json");
  CHECK(store.list(at("run/7")).size() == 3);
  write(folder / ".copy.partial" / "z" / "large", pattern(std::size_t{7} << 20)); // of a killed one
  write(folder / ".copy.partial" / "old", "of an earlier checkpoint");
  CHECK(has(error_of([&] {
              download_folder(store, at("run/7"), folder / "copy", "manifest.json",
                              [](const auto&) { throw StoreError("a checksum is wrong"); });
            }).what(),
            "a checksum is wrong"));
  CHECK(!std::filesystem::exists(folder / ".copy.partial"));
  const auto asked = [&] { // number of requests for parts of the large file
    const std::string log = read_text(folder / "swift" / "requests.log");
    std::size_t times = 0;
    for (auto place = log.find("GET /bucket/run/7/z/large"); place != std::string::npos;
         place = log.find("GET /bucket/run/7/z/large", place + 1))
      ++times;
    return times;
  };
  CHECK(asked() == 1); // for bytes 7 to 11 MiB; parts have 5 MiB
  write(folder / ".copy.partial" / "old", "of an earlier checkpoint");
  download_folder(store, at("run/7"), folder / "copy", "manifest.json");
  CHECK(read_text(folder / "copy" / "z" / "large") == read_text(folder / "7" / "z" / "large"));
  CHECK(read_text(folder / "copy" / "manifest.json") == "{}");
  CHECK(asked() == 4);
  CHECK(!std::filesystem::exists(folder / "copy" / "old"));
  remove_folder(store, at("run/7"), "manifest.json");
  CHECK(store.list(at("run/7")).empty());
}

TEST_CASE("The local copy of a recording has the name of its address, even of a whole bucket") {
  CHECK(recording_copy(at("a/b")) == std::filesystem::path("recordings/bucket/a/b"));
  CHECK(recording_copy(at("")).parent_path() == std::filesystem::path("recordings"));
  CHECK(recording_copy(at("")).filename() == std::filesystem::path("bucket"));
}

TEST_CASE("An object name that leads out of the folder is refused") {
  TemporaryFolder folder;
  const Swift swift(folder / "swift");
  if (!swift.runs())
    return;
  ObjectStore store(swift.options());
  store.put_bytes(at("run/7/manifest.json"), bytes_of("{}"));
  store.put_bytes(at("run/7/a/../../../escaped"), bytes_of("x"));
  CHECK(has(error_of([&] {
              download_folder(store, at("run/7"), folder / "copy", "manifest.json");
            }).what(),
            "cannot be a file name"));
  CHECK(!std::filesystem::exists(folder / "copy"));
  CHECK(!std::filesystem::exists(folder / ".copy.partial"));
}
