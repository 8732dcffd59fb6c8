#include "env/wire/keys.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <random>

#include <sys/stat.h>
#include <unistd.h>

namespace troupe::env::wire {
namespace {

namespace fs = std::filesystem;

fs::path written(const TemporaryFolder& folder, const std::string& name, const std::string& text,
                 mode_t mode = 0600) {
  std::ofstream(folder / name) << text;
  REQUIRE_EQ(::chmod((folder / name).c_str(), mode), 0);
  return folder / name;
}

constexpr auto* complaint = &error_of<std::invalid_argument>;

TEST_CASE("A key pair is read back from its files, and only its owner can read the secret") {
  const TemporaryFolder folder;
  const KeyPair made = make_key_pair();
  write_key_pair(made, folder / "a" / "b");
  const fs::path secret = folder / "a" / "b" / "troupe.secret";
  const fs::path publics = folder / "a" / "b" / "troupe.public";
  struct stat status {};
  REQUIRE_EQ(::stat(secret.c_str(), &status), 0);
  CHECK_EQ(status.st_mode & 0777U, 0600U);
  const KeyPair read = read_secret_key(secret);
  CHECK_EQ(read.public_key, made.public_key);
  CHECK_EQ(read.secret_key, made.secret_key);
  CHECK_EQ(read_public_keys(publics), std::set<std::string>{made.public_key});
  CHECK_EQ(read_public_keys(secret), std::set<std::string>{made.public_key});
  CHECK_EQ(read_client_keys(secret, publics).server, made.public_key);
  CHECK_NE(complaint([&] { write_key_pair(made, folder / "a" / "b"); }).find("is not replaced"),
           std::string::npos);
}

TEST_CASE("Key files that are missing, open to others or damaged are refused, and the error names "
          "the reason") {
  const TemporaryFolder folder;
  const KeyPair a = make_key_pair();
  const KeyPair b = make_key_pair();
  const auto secret_of = [](const fs::path& file) {
    return complaint([&] { read_secret_key(file); });
  };
  const auto has = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK_NE(text.find(part), std::string::npos);
  };
  has(secret_of(folder / "none"), "No such file");
  has(secret_of(folder / "none"), "troupe keys new DIR");
  has(secret_of(folder.path()), "not a file of keys");
  has(secret_of(written(folder, "open", "secret " + a.secret_key + "\n", 0644)), "mode 0644");
  has(secret_of(written(folder, "group", "secret " + a.secret_key + "\n", 0640)), "chmod 600");
  has(secret_of(written(folder, "word", "hidden " + a.secret_key + "\n")), "line 1 is neither");
  has(secret_of(written(folder, "short", "# x\nsecret abc\n")), "short:2: a key has 40");
  has(secret_of(written(folder, "odd", "secret " + std::string(40, '"') + "\n")), "a key has 40");
  has(secret_of(written(folder, "empty", "")), "has 0 secret keys");
  has(secret_of(
          written(folder, "two", "secret " + a.secret_key + "\nsecret " + b.secret_key + "\n")),
      "has 2 secret keys");
  has(complaint([&] { read_public_keys(written(folder, "no", "# none\n")); }), "has no key");
  const fs::path both = written(
      folder, "both", "public " + a.public_key + "\n\n# b\npublic " + b.public_key + "\n", 0644);
  CHECK_EQ(read_public_keys(both).size(), 2);
  const fs::path own = written(folder, "own", "secret " + a.secret_key + "\n");
  has(complaint([&] { read_client_keys(own, both); }), "has 2 keys; a server has one");
  CHECK_EQ(read_server_keys(own, both).allowed.size(), 2);
}

TEST_CASE("Reading an altered key file gives keys or an error") {
  const TemporaryFolder folder;
  const KeyPair pair = make_key_pair();
  const std::string text =
      "# note\npublic " + pair.public_key + "\nsecret " + pair.secret_key + "\n";
  std::mt19937 random(11);
  int read = 0;
  for (int i = 0; i < 500; ++i) {
    std::string altered = text;
    for (auto flips = random() % 3; flips > 0; --flips)
      altered[random() % altered.size()] = static_cast<char>(random());
    altered.resize(altered.size() - random() % 3);
    const fs::path file = written(folder, "altered", altered);
    if (complaint([&] { read_secret_key(file); }).empty())
      ++read;
  }
  CHECK_GT(read, 0);
  CHECK_LT(read, 500);
}

} // namespace
} // namespace troupe::env::wire
