#include "collectives/life_line.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <sys/socket.h>

namespace troupe::collectives {
namespace {

constexpr std::chrono::milliseconds kConnect{500};

} // namespace

LifeLine::LifeLine(const std::string& host)
    : listener_(listen_at(host, 0)), address_(host + " " + std::to_string(port_of(listener_))) {}

Watch::Watch(const std::string& address) {
  const auto space = address.find(' ');
  if (space == std::string::npos)
    return; // no address: it cannot be told
  try {
    socket_ = connect_to(address.substr(0, space), std::atoi(address.c_str() + space),
                         std::chrono::steady_clock::now() + kConnect);
  } catch (const std::system_error& error) {
    dead_ = error.code().value() == ECONNREFUSED || error.code().value() == ECONNRESET;
  } catch (const std::runtime_error&) {
    return; // a host without a name: it cannot be told
  }
}

bool Watch::dead() {
  char byte = 0;
  if (!dead_ && socket_) {
    const auto got = recv(socket_.fd(), &byte, 1, 0); // non-blocking
    dead_ = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  }
  return dead_;
}

} // namespace troupe::collectives
