#include "env/sockets/listen.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "env/text/number_in.hpp"

namespace troupe::env::wire {

namespace {

constexpr int kListenBacklog = 1024;
constexpr const char* kTcpForm = "; the form is tcp://127.0.0.1:<port>, * for any free port";
constexpr const char* kInUse =
    "; end the program that holds it (ss -ltnp shows it), choose another port, or let "
    "tcp://127.0.0.1:* find a free one";

struct PathAddress {
  explicit PathAddress(const std::string& path) {
    un.sun_family = AF_UNIX;
    fits = path.size() < sizeof un.sun_path;
    std::memcpy(un.sun_path, path.data(), std::min(path.size(), sizeof un.sun_path - 1));
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    if (path.starts_with('@'))
      un.sun_path[0] = '\0'; // an abstract name, without a file
    else
      ++size;
  }
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&un); }
  sockaddr_un un{};
  socklen_t size = 0;
  bool fits = false;
};

/// Whether a process accepts connections at `path`, which may be too long for an address.
bool is_served(const std::string& path) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool fits = PathAddress(path).fits;
  // The name of a descriptor is short.
  const Descriptor file(fits ? -1 : ::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!probe || (!fits && !file))
    return true; // unknown
  const PathAddress address(fits ? path : "/proc/self/fd/" + std::to_string(file.number()));
  if (::connect(probe.number(), address.generic(), address.size) == 0)
    return true;
  if (errno == ENOENT)
    return !fits;               // nothing is there, or /proc is missing
  return errno != ECONNREFUSED; // EAGAIN: the queue of connections is full
}

} // namespace

Listener::Listener(const std::string& endpoint) : endpoint_(endpoint) {
  if (endpoint.starts_with("tcp://"))
    listen_tcp(endpoint.substr(6));
  else if (endpoint.starts_with("ipc://"))
    listen_path(endpoint.substr(6));
  else
    fail(EPROTONOSUPPORT, kTcpForm);
}

Listener::~Listener() {
  struct stat now {};
  if (!path_.empty() && ::lstat(path_.c_str(), &now) == 0 && now.st_dev == device_
      && now.st_ino == inode_)
    ::unlink(path_.c_str());
}

void Listener::fail(int error, const std::string& way_out) const {
  throw std::runtime_error("cannot bind " + endpoint_ + ": " + std::strerror(error) + way_out);
}

void Listener::fail_in_use() const {
  fail(EADDRINUSE, "; a server accepts connections there: end it (ss -lxp shows it), or choose "
                   "another path");
}

void Listener::listen_tcp(const std::string& address) {
  const auto colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool six = host.starts_with('[') && host.ends_with(']');
  if (six)
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_family = six ? AF_INET6 : AF_INET; // as libzmq's clients do
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* got = nullptr;
  const bool is_number = number_in<std::uint16_t>(port).has_value();
  if ((port != "*" && !is_number) || host.empty()
      || ::getaddrinfo(host == "*" ? nullptr : host.c_str(), port == "*" ? "0" : port.c_str(),
                       &hints, &got)
             != 0)
    fail(EINVAL, kTcpForm);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(got, ::freeaddrinfo);
  socket_ = Descriptor(
      ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  const int on = 1;
  if (!socket_ || ::setsockopt(socket_.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0
      || ::bind(socket_.number(), found->ai_addr, found->ai_addrlen) != 0
      || ::listen(socket_.number(), kListenBacklog) != 0)
    fail(errno, errno == EADDRINUSE ? kInUse : kTcpForm);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  std::array<char, NI_MAXHOST> name{};
  std::array<char, NI_MAXSERV> number{};
  if (::getsockname(socket_.number(), reinterpret_cast<sockaddr*>(&bound), &size) != 0
      || ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, name.data(), name.size(),
                       number.data(), number.size(), NI_NUMERICHOST | NI_NUMERICSERV)
             != 0)
    fail(errno, kTcpForm);
  const std::string text = name.data();
  endpoint_ =
      "tcp://" + (bound.ss_family == AF_INET6 ? "[" + text + "]" : text) + ":" + number.data();
}

void Listener::listen_path(const std::string& path) {
  const PathAddress address(path);
  if (path.empty() || !address.fits)
    fail(ENAMETOOLONG, "; the path of a socket must have 1 to 107 bytes");
  socket_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_)
    fail(errno, "");
  is_abstract_ = path.starts_with('@');
  struct stat there {};
  if (!is_abstract_ && ::lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode))
      fail(EEXIST, "; a file that is not a socket exists there and is kept: choose another path");
    if (is_served(path))
      fail_in_use();
    // Only the process that renames the path removes it. Another one may have bound here since the
    // check.
    const std::string old = path + "." + std::to_string(::getpid());
    if (::rename(path.c_str(), old.c_str()) == 0) {
      if (is_served(old)) {
        if (::link(old.c_str(), path.c_str()) == 0)
          ::unlink(old.c_str());
        fail_in_use();
      }
      ::unlink(old.c_str());
    } else if (errno != ENOENT)
      fail(errno,
           "; the socket of a server that has ended is still there: remove it, or choose another "
           "path");
  }
  if (::bind(socket_.number(), address.generic(), address.size) != 0) // never replaces a file
    errno == EADDRINUSE ? fail_in_use() : fail(errno, "; does its folder exist?");
  struct stat mine {};
  const bool has_file = !is_abstract_ && ::lstat(path.c_str(), &mine) == 0;
  if (::listen(socket_.number(), kListenBacklog) != 0)
    fail(errno, "");
  if (is_abstract_)
    return;
  // Another process that found the same old socket may have mistaken this one for it before it
  // listened.
  if (!has_file || ::lstat(path.c_str(), &there) != 0 || there.st_ino != mine.st_ino
      || there.st_dev != mine.st_dev)
    fail_in_use();
  path_ = path;
  device_ = mine.st_dev;
  inode_ = mine.st_ino;
}

} // namespace troupe::env::wire
