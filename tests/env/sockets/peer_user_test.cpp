#include "env/sockets/peer_user.hpp"

#include <filesystem>
#include <stdexcept>
#include <string>

#include <netinet/tcp.h>
#include <sys/stat.h>

#include "env/sockets/listen.hpp"
#include "env/sockets/socket_table.hpp"
#include "env/wire/plain_port.hpp"
#include "env/wire/socket.hpp"
#include "tests/another_user.hpp"
#include "tests/env/wire/receive.hpp"
#include "tests/env/wire/zmtp_peer.hpp"
#include "tests/eventually.hpp"
#include "tests/temporary_folder.hpp"
#include <doctest/doctest.h>

// Ports of this host without keys, and processes of other users on it.
namespace troupe::env::wire {
namespace {

using std::chrono::seconds;
using tests::AnotherUser;

Descriptor accept_at(const Listener& listener) {
  return Descriptor(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
}

/// True if the connection was closed without any data.
bool is_cut_off(const Descriptor& socket) {
  char byte = 0;
  return ::recv(socket.number(), &byte, 1, 0) <= 0;
}

bool as_root() {
  if (::geteuid() == 0)
    return true;
  MESSAGE("skipped: only root can act as another user");
  return false;
}

TEST_CASE("The kernel names the user at the other end of a TCP or Unix-domain connection") {
  const TemporaryFolder folder;
  for (const std::string& at :
       {std::string("tcp://127.0.0.1:*"), "ipc://" + (folder / "s").string()}) {
    CAPTURE(at);
    const Listener listener(at);
    Descriptor client = dial(listener.endpoint());
    const Descriptor accepted = accept_at(listener);
    CHECK(is_own_user(peer_user(accepted.number())));
    if (!listener.is_tcp())
      continue;
    CHECK(is_own_user(server_user(client.number())));
    CHECK(is_own_user(server_user(listener.endpoint())));
    client = Descriptor();
    CHECK_FALSE(peer_user(accepted.number()).has_value()); // might be another process's by now
  }
  CHECK_FALSE(peer_user(-1).has_value());
}

TEST_CASE("The socket table in /proc agrees with the kernel's answer") {
  for (const std::string& at : {std::string("tcp://127.0.0.1:*"), std::string("tcp://[::1]:*")}) {
    CAPTURE(at);
    const Listener listener(at);
    sockaddr_storage here{}, there{};
    socklen_t size = sizeof here;
    REQUIRE_EQ(::getsockname(listener.number(), reinterpret_cast<sockaddr*>(&here), &size), 0);
    const Descriptor client(::socket(here.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE_EQ(::connect(client.number(), reinterpret_cast<sockaddr*>(&here), size), 0);
    const Descriptor accepted = accept_at(listener);
    size = sizeof there;
    REQUIRE_EQ(::getsockname(client.number(), reinterpret_cast<sockaddr*>(&there), &size), 0);
    const TcpEnd server = tcp_end(here), peer = tcp_end(there), any{.family = server.family};
    for (const auto& [near, far] : {std::pair(peer, server), std::pair(server, any)}) {
      const auto found = find_socket(near, far);
      REQUIRE(found);
      CHECK_EQ(found->user, ::geteuid());
      CHECK_EQ(found->state, far.port == 0 ? TCP_LISTEN : TCP_ESTABLISHED);
      const auto answer = ask_for_socket(near, far);
      CHECK((!answer || (answer->user == found->user && answer->state == found->state)));
    }
    TcpEnd nobody = peer;
    nobody.port = server.port; // a listening port is not connected to itself
    CHECK_FALSE(find_socket(nobody, server));
  }
}

TEST_CASE("The longest path of a dead server's socket is taken over, that of a live one is not") {
  const TemporaryFolder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = (folder / "").string();
  path.resize(sizeof address.sun_path - 1, 's'); // without room for a suffix
  path.copy(address.sun_path, path.size());
  {
    const Descriptor dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE_EQ(::bind(dead.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
               0);
  }
  REQUIRE(std::filesystem::exists(path));
  {
    const Listener listener("ipc://" + path);
    const Descriptor client = dial(listener.endpoint());
    CHECK(client);
    CHECK_THROWS_WITH_AS(Listener("ipc://" + path),
                         doctest::Contains("a server accepts connections there"),
                         std::runtime_error);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("The user of a server that has ended or runs on another host is unknown") {
  std::string endpoint;
  {
    const Listener listener("tcp://127.0.0.1:*");
    endpoint = listener.endpoint();
  }
  CHECK_FALSE(server_user(endpoint).has_value());
  CHECK_FALSE(server_user("tcp://10.0.0.1:7400").has_value());
  CHECK_FALSE(server_user("tcp://127.0.0.1").has_value());
  CHECK_FALSE(server_user("ipc://@name").has_value());
  const Listener six("tcp://[::1]:*");
  CHECK(is_own_user(server_user(six.endpoint())));
}

TEST_CASE("Another user's connection is recognised, and another user's server is refused") {
  if (!as_root())
    return;
  std::unique_ptr<Listener> theirs;
  const Listener ours("tcp://127.0.0.1:*");
  Descriptor stranger;
  {
    const AnotherUser user;
    theirs = std::make_unique<Listener>("tcp://127.0.0.1:*");
    stranger = dial(ours.endpoint());
    CHECK_FALSE(is_own_user(0U));
  }
  CHECK_EQ(peer_user(accept_at(ours).number()), AnotherUser::kNumber);
  const Descriptor client = dial(theirs->endpoint());
  CHECK_EQ(server_user(client.number()), AnotherUser::kNumber);
  CHECK_THROWS_WITH_AS(check_server_user(server_user(theirs->endpoint()), "the server"),
                       doctest::Contains("another user of this host (user id 65534)"),
                       std::runtime_error);
  CHECK_THROWS_AS(check_server_user(std::nullopt, "the server"), std::runtime_error);
  Context context;
  Socket dealer(context, SocketType::dealer);
  CHECK_THROWS_WITH_AS(dealer.connect(theirs->endpoint()),
                       doctest::Contains("give the server keys"), std::runtime_error);
}

TEST_CASE("A port without keys disconnects other users without an answer and serves its own user") {
  if (!as_root())
    return;
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0755);
  for (const std::string& at :
       {std::string("tcp://127.0.0.1:*"), "ipc://" + (folder / "s").string()}) {
    CAPTURE(at);
    Context context;
    Socket server(context, SocketType::router);
    const std::string endpoint = server.bind(at);
    if (endpoint.starts_with("ipc"))
      ::chmod((folder / "s").c_str(), 0777);
    Descriptor stranger;
    {
      const AnotherUser user;
      stranger = dial(endpoint);
      REQUIRE(stranger);
      say_all(stranger, dealer_hello() + part_of("question", false));
    }
    CHECK(is_cut_off(stranger));
    CHECK_EQ(server.disconnected(), 1);
    Socket client(context, SocketType::dealer);
    client.connect(endpoint);
    Message question;
    question.header = "question";
    REQUIRE(client.send(std::move(question), std::chrono::steady_clock::now() + seconds(20)));
    CHECK_EQ(receive(server).header, "question");
    Message more;
    CHECK_EQ(server.try_receive(more), Socket::Received::nothing);
  }
}

TEST_CASE("A port that allows other hosts also admits other users") {
  if (!as_root())
    return;
  Context context;
  Socket server(context, SocketType::router, {.allow_other_hosts = true});
  const std::string endpoint = server.bind("tcp://127.0.0.1:*");
  Descriptor guest;
  {
    const AnotherUser user;
    guest = dial(endpoint);
  }
  CHECK_FALSE(is_cut_off(guest));
  std::unique_ptr<Listener> theirs;
  {
    const AnotherUser user;
    theirs = std::make_unique<Listener>("tcp://127.0.0.1:*");
  }
  Socket client(context, SocketType::dealer, {.allow_other_hosts = true});
  CHECK_NOTHROW(client.connect(theirs->endpoint()));
}

} // namespace
} // namespace troupe::env::wire
