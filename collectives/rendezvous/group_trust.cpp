#include "collectives/rendezvous/group_trust.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/mesh/socket.hpp"

namespace troupe::collectives {
namespace {

constexpr std::size_t kMostSecretBytes = 1 << 16;
constexpr std::size_t kLeastSecretBytes = 32;

[[noreturn]] void refuse_keys(const std::string& file, const std::string& why) {
  throw std::invalid_argument("keys: " + file + " (TROUPE_KEYS): " + why);
}

} // namespace

std::string read_group_secret(const std::string& folder) {
  const std::string file = folder + "/curve.secret";
  const Socket in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!in || ::fstat(in.fd(), &status) != 0)
    refuse_keys(file, std::string(std::strerror(errno))
                          + "; name a folder that `troupe keys cluster DIR` made");
  const bool of_root = status.st_uid == 0 && ::geteuid() != 0; // as containers mount secrets
  if ((status.st_mode & (of_root ? 037U : 077U)) != 0)
    refuse_keys(file, "only its owner may read it: chmod 600 " + file);
  std::string text(kMostSecretBytes, '\0');
  const auto got = S_ISREG(status.st_mode) ? ::read(in.fd(), text.data(), text.size()) : -1;
  if (got < static_cast<ssize_t>(kLeastSecretBytes) || got == static_cast<ssize_t>(text.size()))
    refuse_keys(file, "is not a key file; name a folder that `troupe keys cluster DIR` made");
  text.resize(static_cast<std::size_t>(got));
  return text;
}

CommunicatorOptions with_trust(CommunicatorOptions options, const ProcessTopology& place) {
  auto& trust = options.trust;
  trust.trusted_network = trust.trusted_network || place.trusted_network;
  trust.private_store = trust.private_store || !place.rendezvous_file.empty();
  if (trust.secret.empty() && !place.keys.empty() && place.size > 1)
    trust.secret = read_group_secret(place.keys);
  return options;
}

} // namespace troupe::collectives
