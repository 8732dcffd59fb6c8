#include <doctest/doctest.h>

#include <fstream>

#include <sys/stat.h>

#include "actors/remoting/certificates.hpp"
#include "actors/remoting/cluster_keys.hpp"
#include "tests/full_disk.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

const WallClock::time_point kNow = WallClock::from_time_t(1'800'000'000);

std::string complaint(const fs::path& folder, WallClock::time_point now = kNow) {
  return error_of<std::invalid_argument>([&] { read_cluster_keys(folder, now); });
}

TEST_CASE("A deployment's keys are created once and are readable only by their owner") {
  const TemporaryFolder scratch;
  const fs::path folder = scratch / "a" / "keys";
  make_cluster_keys(folder, kNow);
  struct stat status {};
  REQUIRE_EQ(::stat(folder.c_str(), &status), 0);
  CHECK_EQ(status.st_mode & 0777U, 0700U);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    REQUIRE_EQ(::stat(entry.path().c_str(), &status), 0);
    CHECK_MESSAGE((status.st_mode & 0777U) == 0600U, entry.path());
    ++files;
  }
  CHECK_EQ(files, 5);
  const ClusterKeys keys = read_cluster_keys(folder, kNow);
  CHECK_EQ(why_unusable(keys.node, keys.authority, kNow), "");
  CHECK_EQ(keys.token.size(), 64);
  const std::string node = read_text(folder / "node.pem");
  CHECK_THROWS_WITH_AS(make_cluster_keys(folder, kNow), doctest::Contains("already exists"),
                       std::invalid_argument);
  CHECK_EQ(read_text(folder / "node.pem"), node);
}

TEST_CASE("A full disk leaves no partial set of keys, and a retry with free space succeeds") {
  const TemporaryFolder scratch;
  for (const rlim_t bytes : {0UL, 60UL, 100UL, 600UL}) { // the first write fails, or a later one
    CAPTURE(bytes);
    const std::string cluster = error_of<std::runtime_error>([&] {
      const FullDisk full(bytes);
      make_cluster_keys(scratch / "keys", kNow);
    });
    const std::string pair = error_of<std::runtime_error>([&] {
      const FullDisk full(bytes);
      env::wire::write_key_pair(env::wire::make_key_pair(), scratch / "pair");
    });
    CHECK_NE(cluster, "");
    CHECK(fs::is_empty(scratch / "keys"));
    CHECK_EQ(pair.empty(), bytes >= 100);
    CHECK_EQ(fs::is_empty(scratch / "pair"), bytes < 100);
    fs::remove_all(scratch / "pair");
  }
  make_cluster_keys(scratch / "keys", kNow);
  CHECK_EQ(complaint(scratch / "keys"), "");
}

TEST_CASE("A node needs only files that hold no secret of the authority") {
  const TemporaryFolder scratch;
  make_cluster_keys(scratch / "made", kNow);
  fs::create_directory(scratch / "node");
  for (const char* name : {"ca.crt", "node.pem", "curve.secret", "token"})
    fs::copy_file(scratch / "made" / name, scratch / "node" / name);
  CHECK_EQ(complaint(scratch / "node"), "");
  CHECK_THROWS_WITH_AS(rotate_cluster_keys(scratch / "node", kNow), doctest::Contains("ca.key"),
                       std::invalid_argument);
}

TEST_CASE("A certificate is valid only within its period and under its own authority") {
  const SignedKey authority = make_authority(kNow, hours(100));
  const SignedKey other = make_authority(kNow, hours(100));
  const SignedKey node = make_node(authority, kNow, hours(10));
  const std::string pem = node.certificate + node.secret;
  CHECK_EQ(why_unusable(pem, authority.certificate, kNow), "");
  CHECK_EQ(why_unusable(pem, authority.certificate, kNow + hours(11)), "certificate has expired");
  CHECK_EQ(why_unusable(pem, authority.certificate, kNow - hours(1)),
           "certificate is not yet valid");
  CHECK_NE(why_unusable(pem, other.certificate, kNow), "");
  // An authority's certificate is not accepted as a node's, nor a node's as an authority's.
  CHECK_NE(why_unusable(authority.certificate + authority.secret, authority.certificate, kNow), "");
  const SignedKey forged = make_node(node, kNow, hours(10));
  CHECK_NE(why_unusable(forged.certificate + forged.secret, authority.certificate, kNow), "");
  CHECK_NE(why_unusable(forged.certificate + forged.secret,
                        authority.certificate + node.certificate, kNow),
           "");
  const SignedKey second = make_node(authority, kNow, hours(10));
  CHECK_EQ(why_unusable(node.certificate + second.secret, authority.certificate, kNow),
           "its certificate and secret key do not match");
  CHECK_THROWS_AS(make_node({authority.certificate, node.secret}, kNow, hours(10)),
                  std::invalid_argument);
}

TEST_CASE("An invalid key folder is refused, and the error names the file and a remedy") {
  const TemporaryFolder scratch;
  const fs::path folder = scratch / "keys";
  CHECK(complaint(folder).find("troupe keys cluster") != std::string::npos);
  make_cluster_keys(folder, kNow, {.node = hours(24)});
  CHECK(complaint(folder, kNow + hours(25)).find("certificate has expired") != std::string::npos);
  for (const char* name : {"node.pem", "curve.secret", "token", "ca.crt"}) {
    REQUIRE_EQ(::chmod((folder / name).c_str(), 0644), 0);
    CHECK(complaint(folder).find("chmod 600") != std::string::npos);
    CHECK(complaint(folder).find(name) != std::string::npos);
    REQUIRE_EQ(::chmod((folder / name).c_str(), 0600), 0);
  }
  REQUIRE_EQ(::chmod(folder.c_str(), 0777), 0);
  CHECK(complaint(folder).find("chmod 700") != std::string::npos);
  REQUIRE_EQ(::chmod(folder.c_str(), 0700), 0);
  std::ofstream(folder / "token") << "short\n";
  CHECK(complaint(folder).find("token") != std::string::npos);
  CHECK_EQ(complaint(folder).find("short"), std::string::npos);
  std::ofstream(folder / "node.pem") << "-----BEGIN CERTIFICATE-----\nAAAA\n";
  CHECK(complaint(folder).find("node.pem") != std::string::npos);
  fs::remove(folder / "node.pem");
  CHECK(complaint(folder).find("node.pem") != std::string::npos);
}

TEST_CASE("A rotation keeps the authority by default, and the old pair stays valid for its grace "
          "period") {
  const TemporaryFolder scratch;
  const fs::path folder = scratch / "keys";
  make_cluster_keys(folder, kNow);
  const ClusterKeys before = read_cluster_keys(folder, kNow);
  rotate_cluster_keys(folder, kNow, {.grace = hours(2)});
  const ClusterKeys after = read_cluster_keys(folder, kNow + hours(1));
  CHECK_EQ(after.authority, before.authority);
  CHECK_NE(after.node, before.node);
  CHECK_NE(after.token, before.token);
  CHECK_NE(after.wire.own.secret_key, before.wire.own.secret_key);
  REQUIRE_EQ(after.wire.retired.size(), 1);
  CHECK_EQ(after.wire.retired[0].public_key, before.wire.own.public_key);
  // Old and new nodes accept each other's certificates.
  CHECK_EQ(why_unusable(before.node, after.authority, kNow), "");
  CHECK(read_cluster_keys(folder, kNow + hours(3)).wire.retired.empty());
  for (const auto& entry : fs::directory_iterator(folder)) {
    struct stat status {};
    REQUIRE_EQ(::stat(entry.path().c_str(), &status), 0);
    CHECK_MESSAGE((status.st_mode & 0777U) == 0600U, entry.path());
  }
  rotate_cluster_keys(folder, kNow, {.grace = hours(2), .authority = true});
  const ClusterKeys again = read_cluster_keys(folder, kNow);
  CHECK_NE(again.authority, before.authority);
  CHECK_NE(why_unusable(before.node, again.authority, kNow), "");
  CHECK_EQ(again.wire.retired.size(), 2);
}

TEST_CASE("The description of a deployment's keys contains no secret") {
  const TemporaryFolder scratch;
  const fs::path folder = scratch / "keys";
  make_cluster_keys(folder, kNow);
  rotate_cluster_keys(folder, kNow);
  const ClusterKeys keys = read_cluster_keys(folder, kNow);
  std::string told;
  for (const std::string& line : describe_cluster_keys(folder, kNow))
    told += line + "\n";
  CHECK(told.find(keys.wire.own.public_key) != std::string::npos);
  CHECK(told.find("good until 2028-01-15 08:00:00 UTC") != std::string::npos);
  CHECK_EQ(told.find(keys.token), std::string::npos);
  CHECK_EQ(told.find(keys.wire.own.secret_key), std::string::npos);
  CHECK_EQ(told.find(keys.wire.retired.at(0).secret_key), std::string::npos);
  CHECK_EQ(told.find("PRIVATE"), std::string::npos);
}

} // namespace
} // namespace troupe::actors
