#include "env/wire/keys.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <stdexcept>
#include <unistd.h>
#include <vector>

#include <sys/stat.h>
#include <zmq.h>

#include "env/sockets/descriptor.hpp"
#include "env/whole_file.hpp"

namespace troupe::env::wire {

namespace {

constexpr std::size_t kKeyText = 40; // characters; 32 bytes in Z85
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw std::invalid_argument("key file " + file.string() + ": " + why);
}

std::string public_key_of(const std::string& secret) {
  std::array<char, kKeyText + 1> text{};
  if (zmq_curve_public(text.data(), secret.c_str()) != 0)
    throw std::runtime_error(std::string("deriving a public key: ") + zmq_strerror(zmq_errno()));
  return text.data();
}

struct KeyFile {
  std::vector<std::string> publics;
  std::vector<std::string> secrets;
};

std::string read_text(const std::filesystem::path& file, struct stat& status) {
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!in || ::fstat(in.number(), &status) != 0)
    refuse(file, std::string(std::strerror(errno)) + "; `troupe keys new DIR` makes keys");
  if (!S_ISREG(status.st_mode) || static_cast<std::size_t>(status.st_size) > kMostBytes)
    refuse(file, "not a file of keys; `troupe keys new DIR` makes keys");
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t at = 0; at < text.size();) {
    const auto got = ::read(in.number(), text.data() + at, text.size() - at);
    if (got <= 0) {
      text.resize(at);
      break;
    }
    at += static_cast<std::size_t>(got);
  }
  return text;
}

KeyFile read_keys(const std::filesystem::path& file) {
  struct stat status {};
  std::istringstream text(read_text(file, status));
  KeyFile keys;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    const std::string where = file.string() + ":" + std::to_string(++number);
    if (line.empty() || line == "#" || line.starts_with("# "))
      continue;
    const bool is_secret = line.starts_with("secret ");
    if (!is_secret && !line.starts_with("public "))
      refuse(file, "line " + std::to_string(number)
                       + " is neither `public <key>` nor `secret <key>`; `troupe keys new DIR` "
                         "makes such files");
    check_key(line.substr(7), where);
    (is_secret ? keys.secrets : keys.publics).push_back(line.substr(7));
  }
  const bool of_root = status.st_uid == 0 && ::geteuid() != 0;
  if (!keys.secrets.empty() && (status.st_mode & (of_root ? 037U : 077U)) != 0) {
    std::ostringstream mode;
    mode << std::oct << (status.st_mode & 0777U);
    refuse(file, "holds a secret key and has mode 0" + mode.str()
                     + "; only its owner may read it: chmod 600 " + file.string());
  }
  return keys;
}

void write_file(const std::filesystem::path& file, const std::string& text, mode_t mode) {
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!out && errno == EEXIST)
    refuse(file, "exists and is not replaced; choose another folder, or move it away");
  errno = out ? ENOSPC : errno; // a short write leaves errno unchanged
  if (!out || ::write(out.number(), text.data(), text.size()) != std::ssize(text)
      || ::fsync(out.number()) != 0) {
    const int reason = errno;
    if (out)
      ::unlink(file.c_str()); // otherwise the next attempt would refuse to replace it
    throw std::runtime_error("key file " + file.string() + ": " + std::strerror(reason));
  }
}

} // namespace

void check_key(const std::string& key, const std::string& what) {
  std::array<std::uint8_t, 32> bytes{};
  if (key.size() != kKeyText || key.find('\0') != std::string::npos
      || zmq_z85_decode(bytes.data(), key.c_str()) == nullptr)
    throw std::invalid_argument(what
                                + ": a key has 40 characters (Z85), as `troupe keys new DIR` "
                                  "makes it; this one has "
                                + std::to_string(key.size()) + ", or characters outside Z85");
}

KeyPair make_key_pair() {
  std::array<char, kKeyText + 1> publics{};
  std::array<char, kKeyText + 1> secret{};
  if (zmq_curve_keypair(publics.data(), secret.data()) != 0)
    throw std::runtime_error(std::string("making keys: ") + zmq_strerror(zmq_errno())
                             + "; ZeroMQ must be built with CURVE");
  return {publics.data(), secret.data()};
}

void write_key_pair(const KeyPair& pair, const std::filesystem::path& folder) {
  check_key(pair.public_key, "public key");
  check_key(pair.secret_key, "secret key");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw std::runtime_error("folder " + folder.string() + ": " + error.message());
  write_file(folder / "troupe.secret",
             "# Secret: for this host's owner alone.\nsecret " + pair.secret_key + "\n", 0600);
  try {
    write_file(folder / "troupe.public", "public " + pair.public_key + "\n", 0644);
  } catch (...) {
    ::unlink((folder / "troupe.secret").c_str());
    throw;
  }
  env::write_folder_to_disk(folder);
}

KeyPair pair_of(const std::string& secret_key) {
  return {public_key_of(secret_key), secret_key};
}

KeyPair read_secret_key(const std::filesystem::path& file) {
  const KeyFile keys = read_keys(file);
  if (keys.secrets.size() != 1)
    refuse(file,
           "has " + std::to_string(keys.secrets.size())
               + " secret keys; one is needed: `troupe keys new DIR` makes DIR/troupe.secret");
  return pair_of(keys.secrets[0]);
}

std::set<std::string> read_public_keys(const std::filesystem::path& file) {
  const KeyFile keys = read_keys(file);
  std::set<std::string> publics(keys.publics.begin(), keys.publics.end());
  for (const std::string& secret : keys.secrets)
    publics.insert(public_key_of(secret));
  if (publics.empty())
    refuse(file, "has no key; give it a line `public <key>` for each peer");
  return publics;
}

ServerKeys read_server_keys(const std::filesystem::path& own,
                            const std::filesystem::path& allowed) {
  return {read_secret_key(own), read_public_keys(allowed)};
}

ClientKeys read_client_keys(const std::filesystem::path& own, const std::filesystem::path& server) {
  const auto keys = read_public_keys(server);
  if (keys.size() != 1)
    refuse(server, "has " + std::to_string(keys.size()) + " keys; a server has one");
  return {read_secret_key(own), *keys.begin()};
}

} // namespace troupe::env::wire
