#include "experiments/web/secrets.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "env/text/hexadecimal.hpp"

namespace troupe::experiments::web {
namespace {

constexpr std::size_t kTokenBytes = 32;
constexpr std::size_t kLeastLength = 32;
constexpr std::size_t kMostLength = 256;

bool is_token(const std::string& text) {
  return text.size() >= kLeastLength && text.size() <= kMostLength
         && text.find_first_not_of(
                "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_")
                == std::string::npos;
}

} // namespace

std::string new_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error(std::string("cannot get random bytes from the system: ")
                             + std::strerror(errno));
  }
  return env::hexadecimal(bytes);
}

std::string token_of(const std::filesystem::path& file) {
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made >= 0) {
    const std::string token = new_token();
    const std::string line = token + "\n";
    const bool whole = ::write(made, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    if (::close(made) != 0 || !whole) {
      throw std::runtime_error(file.string() + ": cannot be written");
    }
    return token;
  }
  struct stat about {};
  if (errno != EEXIST || ::stat(file.c_str(), &about) != 0) {
    throw std::invalid_argument(file.string() + ": cannot be made: " + std::strerror(errno)
                                + "; name a file in a folder that you may write to");
  }
  // A file that root owns may be readable by its group, because a container that does not run as
  // root gets its secrets in this way.
  const bool of_root = about.st_uid == 0 && ::geteuid() != 0;
  if ((about.st_mode & (of_root ? 037U : 077U)) != 0 || (!of_root && about.st_uid != ::geteuid())) {
    throw std::invalid_argument(file.string()
                                + ": is another user's, or others can read it; chmod 600, or "
                                  "remove it for a new token");
  }
  std::ifstream in(file);
  std::string token;
  in >> token;
  if (!is_token(token)) {
    throw std::invalid_argument(file.string()
                                + ": must contain a token of 32 to 256 letters, digits, - and _; "
                                  "remove it for a new one");
  }
  return token;
}

bool equal_secrets(std::string_view one, std::string_view other) {
  unsigned difference = one.size() == other.size() ? 0 : 1;
  for (std::size_t i = 0; i < other.size(); ++i) {
    const char mine = one.empty() ? '\0' : one[i % one.size()];
    difference |= static_cast<unsigned char>(mine) ^ static_cast<unsigned char>(other[i]);
  }
  return difference == 0;
}

} // namespace troupe::experiments::web
