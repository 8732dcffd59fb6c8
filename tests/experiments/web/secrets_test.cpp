#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "experiments/web/secrets.hpp"
#include "tests/another_user.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments::web;

TEST_CASE("Secrets are equal only if all of their bytes are equal") {
  CHECK(equal_secrets("abc", "abc"));
  CHECK_FALSE(equal_secrets("abc", "abd"));
  CHECK_FALSE(equal_secrets("abc", "abcabc"));
  CHECK_FALSE(equal_secrets("abc", ""));
  CHECK_FALSE(equal_secrets("", "abc"));
}

TEST_CASE(
    "A token file is created for its owner only, read again, and refused if others can read it") {
  const TemporaryFolder folder;
  const auto file = folder / "token";
  const std::string token = token_of(file);
  CHECK(token.size() == 64);
  CHECK(token != new_token());
  namespace fs = std::filesystem;
  CHECK((fs::status(file).permissions() & fs::perms::all)
        == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(token_of(file) == token);
  fs::permissions(file, fs::perms::group_read, fs::perm_options::add);
  CHECK(has(error_of([&] { token_of(file); }), "chmod 600"));
  fs::permissions(file, fs::perms::group_read, fs::perm_options::remove);
  std::ofstream(file) << "short";
  CHECK(has(error_of([&] { token_of(file); }), "32 to 256"));
  CHECK(has(error_of([&] { token_of(folder / "none" / "token"); }), "cannot be made"));
}

TEST_CASE("A token file of root may be readable by its group, as containers mount secrets") {
  const TemporaryFolder folder;
  const auto file = folder / "token";
  const std::string token = token_of(file);
  using std::filesystem::perms;
  std::filesystem::permissions(folder.path(), perms{0755});
  std::filesystem::permissions(file, perms{0440});
  const tests::AnotherUser user;
  if (!user) // only root can act as another user
    return;
  CHECK(token_of(file) == token);
}

TEST_CASE("A token file of root that every user can read is refused") {
  const TemporaryFolder folder;
  const auto file = folder / "token";
  token_of(file);
  using std::filesystem::perms;
  std::filesystem::permissions(folder.path(), perms{0755});
  std::filesystem::permissions(file, perms{0444});
  const tests::AnotherUser user;
  CHECK(has(error_of([&] { token_of(file); }), "others can read it"));
}
