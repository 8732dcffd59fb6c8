#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "experiments/web/secrets.hpp"
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
