#include "actors/remoting/cluster_keys.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include "actors/remoting/certificates.hpp"
#include "env/sockets/descriptor.hpp"
#include "env/whole_file.hpp"

namespace troupe::actors {

namespace {

namespace fs = std::filesystem;
using env::wire::Descriptor;

constexpr const char* kAuthority = "ca.crt";
constexpr const char* kAuthoritySecret = "ca.key";
constexpr const char* kNode = "node.pem";
constexpr const char* kPair = "curve.secret";
constexpr const char* kRetired = "curve.retired";
constexpr const char* kToken = "token";
constexpr std::size_t kMostKeyFileBytes = std::size_t{1} << 20;
constexpr std::size_t kLeastToken = 32;
constexpr int kTokenBytes = 32;

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw std::invalid_argument("keys: " + file.string() + ": " + why);
}

std::string octal(mode_t mode) {
  std::ostringstream text;
  text << '0' << std::oct << (mode & 0777U);
  return text.str();
}

/// A file that root owns may be readable by its group, because a container that does not run as
/// root gets its secrets in this way.
void check_mode(const fs::path& file, const struct stat& status) {
  const bool of_root = status.st_uid == 0 && ::geteuid() != 0;
  if ((status.st_mode & (of_root ? 037U : 077U)) != 0)
    refuse(file, "has mode " + octal(status.st_mode) + "; only its owner may read it: chmod 600 "
                     + file.string());
}

/// Reads a file that only its owner may read.
std::string read_file(const fs::path& file, const std::string& way_out) {
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!in || ::fstat(in.number(), &status) != 0)
    refuse(file, std::string(std::strerror(errno)) + "; " + way_out);
  if (!S_ISREG(status.st_mode) || static_cast<std::size_t>(status.st_size) > kMostKeyFileBytes)
    refuse(file, "is not a key file; " + way_out);
  check_mode(file, status);
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(in.number(), text.data() + size, text.size() - size);
    if (got <= 0)
      break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

void write_all(const fs::path& file, int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const auto wrote = ::write(descriptor, text.data() + done, text.size() - done);
    if (wrote <= 0)
      throw std::runtime_error("keys: " + file.string() + ": " + std::strerror(errno));
    done += static_cast<std::size_t>(wrote);
  }
  if (::fsync(descriptor) != 0)
    throw std::runtime_error("keys: " + file.string() + ": " + std::strerror(errno));
}

void write_new(const fs::path& file, const std::string& text) {
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out && errno == EEXIST)
    refuse(file, "already exists; choose another folder, or `troupe keys rotate "
                     + file.parent_path().string() + "`");
  if (!out)
    throw std::runtime_error("keys: " + file.string() + ": " + std::strerror(errno));
  write_all(file, out.number(), text);
}

void replace(const fs::path& file, const std::string& text) {
  const fs::path fresh = file.string() + ".new";
  ::unlink(fresh.c_str()); // left by an interrupted rotation
  write_new(fresh, text);
  fs::rename(fresh, file);
  env::write_folder_to_disk(file.parent_path());
}

void refuse_present(const fs::path& folder) {
  for (const char* name : {kAuthority, kAuthoritySecret, kNode, kPair, kRetired, kToken})
    if (fs::exists(folder / name))
      refuse(folder / name, "already exists; choose another folder, or `troupe keys "
                            "rotate "
                                + folder.string() + "`");
}

/// Writes all files or none: they are renamed once all are on the disk. The folder is locked.
void write_set(const fs::path& folder, const std::map<std::string, std::string>& files) {
  const auto fresh = [&](const std::string& name) { return folder / (name + ".new"); };
  std::vector<fs::path> made;
  try {
    for (const auto& [name, text] : files) {
      ::unlink(fresh(name).c_str()); // left by a process that was killed
      made.push_back(fresh(name));
      write_new(fresh(name), text);
    }
    for (const auto& [name, text] : files) {
      made.push_back(folder / name);
      fs::rename(fresh(name), folder / name);
    }
    env::write_folder_to_disk(folder);
  } catch (...) {
    for (const fs::path& file : made)
      ::unlink(file.c_str());
    throw;
  }
}

std::string pair_text(const env::wire::KeyPair& pair) {
  return "# Secret: only for the nodes of this deployment.\nsecret " + pair.secret_key + "\n";
}

struct Retired {
  std::int64_t until = 0; // seconds since 1970
  std::string secret;
};

/// The file has lines of the form "<until> <secret>".
std::vector<Retired> read_retired(const fs::path& file) {
  std::vector<Retired> found;
  if (!fs::exists(file))
    return found;
  std::istringstream text(read_file(file, "remove it"));
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line.starts_with("#"))
      continue;
    std::istringstream words(line);
    Retired one;
    if (!(words >> one.until >> one.secret))
      refuse(file, "a line is not `<seconds since 1970> <secret key>`; remove the file, or restore "
                   "what `troupe keys rotate` wrote");
    env::wire::check_key(one.secret, "keys: " + file.string());
    found.push_back(one);
  }
  return found;
}

std::int64_t seconds_of(WallClock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string way_out(const fs::path& folder) {
  return "`troupe keys cluster " + folder.string() + "` creates a key folder";
}

void check_folder(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    refuse(folder, std::string(std::strerror(errno)) + "; " + way_out(folder));
  if (!S_ISDIR(status.st_mode))
    refuse(folder, "is not a folder; " + way_out(folder));
  if ((status.st_mode & 022U) != 0 && (status.st_mode & S_ISVTX) == 0)
    refuse(folder, "has mode " + octal(status.st_mode)
                       + "; others could put their own keys in it: chmod 700 " + folder.string());
}

std::string read_token(const fs::path& file, const std::string& out) {
  std::string token = read_file(file, out);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r'))
    token.pop_back();
  for (const char c : token)
    if (c <= ' ' || c > '~')
      refuse(file, "has a character that HTTP headers forbid; `troupe keys rotate` makes a token");
  if (token.size() < kLeastToken)
    refuse(file, "has " + std::to_string(token.size()) + " characters; a token has at least "
                     + std::to_string(kLeastToken) + ": `troupe keys rotate` makes one");
  return token;
}

/// Locks the folder while its files change.
Descriptor lock(const fs::path& folder) {
  Descriptor held(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!held)
    refuse(folder, std::string(std::strerror(errno)) + "; " + way_out(folder));
  if (::flock(held.number(), LOCK_EX | LOCK_NB) != 0)
    refuse(folder, "another process is changing its keys; wait until it has finished");
  return held;
}

void check_validity(const KeyValidity& validity) {
  using std::chrono::hours;
  if (validity.node <= hours(0) || validity.authority < validity.node
      || validity.authority > hours(24 * 36500))
    throw std::invalid_argument("keys: a node certificate good for "
                                + std::to_string(validity.node.count()) + " h and an authority for "
                                + std::to_string(validity.authority.count())
                                + " h; the first must be positive, the second no shorter and at "
                                  "most a hundred years: --days");
}

} // namespace

void make_cluster_keys(const fs::path& folder, WallClock::time_point now,
                       const KeyValidity& validity) {
  check_validity(validity);
  refuse_present(folder);
  std::error_code error;
  if (folder.has_parent_path())
    fs::create_directories(folder.parent_path(), error);
  if (error || (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST))
    throw std::runtime_error("keys: folder " + folder.string() + ": "
                             + (error ? error.message() : std::strerror(errno)));
  check_folder(folder);
  const Descriptor held = lock(folder);
  refuse_present(folder); // another process may have made them before we got the lock
  const SignedKey authority = make_authority(now, validity.authority);
  const SignedKey node = make_node(authority, now, validity.node);
  write_set(folder, {{kAuthority, authority.certificate},
                     {kAuthoritySecret, authority.secret},
                     {kNode, node.certificate + node.secret},
                     {kPair, pair_text(env::wire::make_key_pair())},
                     {kToken, random_hex(kTokenBytes) + "\n"}});
}

void rotate_cluster_keys(const fs::path& folder, WallClock::time_point now,
                         const KeyRotation& rotation) {
  check_validity(rotation.validity);
  if (rotation.grace < std::chrono::hours(0))
    throw std::invalid_argument("keys: a grace period of " + std::to_string(rotation.grace.count())
                                + " h; it must be at least 0: --grace-hours");
  check_folder(folder);
  const Descriptor held = lock(folder);
  SignedKey authority;
  if (rotation.authority)
    authority = make_authority(now, rotation.validity.authority);
  else
    authority = {read_file(folder / kAuthority, way_out(folder)),
                 read_file(folder / kAuthoritySecret,
                           "without the authority's secret nothing can be signed: rotate where the "
                           "folder was made, or make a new authority with --ca")};
  const SignedKey node = make_node(authority, now, rotation.validity.node);

  // Writes the old pair here before it is replaced. After an interruption in between, both files
  // hold it.
  std::ostringstream retired;
  retired << "# Secret. Pairs before curve.secret: good until (seconds since 1970), secret key.\n";
  for (const Retired& one : read_retired(folder / kRetired))
    if (one.until > seconds_of(now))
      retired << one.until << ' ' << one.secret << '\n';
  const auto old = env::wire::read_secret_key(folder / kPair);
  if (rotation.grace.count() > 0)
    retired << seconds_of(now + rotation.grace) << ' ' << old.secret_key << '\n';
  replace(folder / kRetired, retired.str());
  replace(folder / kPair, pair_text(env::wire::make_key_pair()));
  if (rotation.authority) {
    replace(folder / kAuthoritySecret, authority.secret);
    replace(folder / kAuthority, authority.certificate);
  }
  replace(folder / kNode, node.certificate + node.secret);
  replace(folder / kToken, random_hex(kTokenBytes) + "\n");
}

ClusterKeys read_cluster_keys(const fs::path& folder, WallClock::time_point now) {
  check_folder(folder);
  const std::string out = way_out(folder);
  ClusterKeys keys;
  keys.folder = folder;
  keys.authority = read_file(folder / kAuthority, out);
  keys.node = read_file(folder / kNode, out);
  if (const auto why = why_unusable(keys.node, keys.authority, now); !why.empty())
    refuse(folder / kNode, "cannot be used with " + (folder / kAuthority).string() + ": " + why
                               + "; `troupe keys rotate " + folder.string() + "` makes a new one");
  read_file(folder / kPair, out); // only to check its mode
  keys.wire.own = env::wire::read_secret_key(folder / kPair);
  for (const Retired& one : read_retired(folder / kRetired))
    if (one.until > seconds_of(now) && one.secret != keys.wire.own.secret_key)
      keys.wire.retired.push_back(env::wire::pair_of(one.secret));
  keys.token = read_token(folder / kToken, out);
  return keys;
}

std::vector<std::string> describe_cluster_keys(const fs::path& folder, WallClock::time_point now) {
  check_folder(folder);
  std::vector<std::string> lines;
  const std::string out = way_out(folder);
  const auto certificates = [&](const char* name, const char* what) {
    for (const CertificateInfo& one : describe_certificates(read_file(folder / name, out)))
      lines.push_back(std::string(name) + "  " + what + " \"" + one.name + "\", sha256 "
                      + one.fingerprint + ", good until " + time_text(one.until)
                      + (one.until < now ? " (expired)" : ""));
  };
  certificates(kAuthority, "authority");
  if (fs::exists(folder / kAuthoritySecret))
    lines.push_back(std::string(kAuthoritySecret) + "  the authority's secret; no node needs it");
  certificates(kNode, "node certificate and key");
  lines.push_back(std::string(kPair) + "  public "
                  + env::wire::read_secret_key(folder / kPair).public_key);
  for (const Retired& one : read_retired(folder / kRetired))
    lines.push_back(std::string(kRetired).append("  public ")
                    + env::wire::pair_of(one.secret).public_key + ", good until "
                    + time_text(WallClock::time_point(std::chrono::seconds(one.until)))
                    + (one.until < seconds_of(now) ? " (expired)" : ""));
  lines.push_back(std::string(kToken) + "  "
                  + std::to_string(read_token(folder / kToken, out).size()) + " characters");
  return lines;
}

} // namespace troupe::actors
