#include "collectives/shared_memory/shared_segment.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace troupe::collectives {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kKey = "troupe/shared_memory";
constexpr std::size_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr std::chrono::seconds kGreeting{5}; // for a connecting process to identify itself

struct Hello {
  std::uint64_t magic = SharedHeader::kMagic;
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

std::size_t header_bytes() {
  return (sizeof(SharedHeader) + kPage - 1) / kPage * kPage;
}

std::size_t segment_bytes(int size) {
  return header_bytes()
         + 2 * static_cast<std::size_t>(size)
               * (SharedSegment::kSmallBytes + SharedSegment::kStageBytes);
}

[[noreturn]] void fail(const std::string& message) {
  throw std::runtime_error("shared memory: " + message);
}

[[noreturn]] void fail_by_system(const std::string& what) {
  fail(what + ": " + std::strerror(errno));
}

void require_size(int size) {
  if (size < 1 || size > kMostSharedRanks)
    throw std::invalid_argument("shared memory: size " + std::to_string(size) + " must be in [1, "
                                + std::to_string(kMostSharedRanks)
                                + "]; use the hierarchical backend or tcp for more");
}

/// Makes an unnamed file of fixed size, with its memory allocated.
Socket sealed_file(int size) {
  Socket file(memfd_create("troupe-collectives", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const auto bytes = static_cast<off_t>(segment_bytes(size));
  if (!file || ftruncate(file.fd(), bytes) != 0 || fallocate(file.fd(), 0, 0, bytes) != 0
      || fcntl(file.fd(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0)
    fail_by_system(std::to_string(bytes) + " bytes cannot be allocated");
  return file;
}

/// Returns a random name in this network namespace's abstract socket namespace, which creates no
/// file.
std::string random_name() {
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
    fail_by_system("no random name");
  std::string name = "troupe-collectives-";
  for (const auto byte : random) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name;
}

Socket local_socket() {
  Socket socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket)
    fail_by_system("no local socket");
  return socket;
}

socklen_t local_address(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path)
    fail("the rendezvous holds the name of another program; does the port belong to this group's "
         "rank 0?");
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

bool same_user(const Socket& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0
         && peer.uid == geteuid();
}

/// Accepts connections on rank 0's socket until every other rank has connected.
std::vector<Socket> admit_all(const Socket& listener, int size, Deadline deadline) {
  std::vector<Socket> peers(static_cast<std::size_t>(size));
  for (int missing = size - 1; missing > 0;) {
    if (!wait_for_events(listener.fd(), POLLIN, deadline)) {
      std::string names;
      for (int rank = 1; rank < size; ++rank)
        if (!peers[static_cast<std::size_t>(rank)])
          names += (names.empty() ? "" : ", ") + rank_name(rank);
      fail(names + " did not join the rendezvous; was it started on this host, and for "
           + std::to_string(size) + " ranks?");
    }
    Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello;
    const auto soon = std::min(deadline, Clock::now() + kGreeting);
    if (!socket || !same_user(socket) || !wait_for_events(socket.fd(), POLLIN, soon)
        || recv(socket.fd(), &hello, sizeof hello, 0) != static_cast<ssize_t>(sizeof hello)
        || hello.magic != SharedHeader::kMagic)
      continue; // not one of the ranks
    if (hello.size != size || hello.rank < 1 || hello.rank >= size
        || peers[static_cast<std::size_t>(hello.rank)])
      fail("a process connected as rank " + std::to_string(hello.rank) + " of "
           + std::to_string(hello.size) + " to rank 0 of " + std::to_string(size)
           + "; start all with the same size and different ranks");
    peers[static_cast<std::size_t>(hello.rank)] = std::move(socket);
    --missing;
  }
  return peers;
}

/// Sends one byte and the descriptors. Returns false if the peer has left.
bool send_fds(const Socket& socket, const std::vector<int>& fds) {
  std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
  char byte = 1;
  iovec payload{&byte, 1};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  return sendmsg(socket.fd(), &message, MSG_NOSIGNAL) == 1;
}

/// Receives the descriptors sent by send_fds(); empty if none arrive.
std::vector<Socket> receive_fds(const Socket& socket, std::size_t most) {
  std::vector<char> control(CMSG_SPACE(most * sizeof(int)));
  char byte = 0;
  iovec payload{&byte, 1};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto got = recvmsg(socket.fd(), &message, MSG_CMSG_CLOEXEC);
  std::vector<Socket> fds;
  for (cmsghdr* header = got >= 0 ? CMSG_FIRSTHDR(&message) : nullptr; header;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
      continue;
    const auto count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return got == 1 ? std::move(fds) : std::vector<Socket>();
}

} // namespace

SharedSegment::SharedSegment(int size, int file) : size_(size), length_(segment_bytes(size)) {
  const int flags = MAP_SHARED | MAP_POPULATE | (file < 0 ? MAP_ANONYMOUS : 0);
  void* mapped = mmap(nullptr, length_, PROT_READ | PROT_WRITE, flags, file, 0);
  if (mapped == MAP_FAILED)
    fail_by_system(std::to_string(length_) + " bytes cannot be mapped");
  bytes_ = static_cast<std::byte*>(mapped);
}

SharedSegment::~SharedSegment() {
  munmap(bytes_, length_);
}

/// Initializes the header before any other rank sees the memory.
void SharedSegment::start() {
  auto* header = new (bytes_) SharedHeader{};
  header->magic = SharedHeader::kMagic;
  header->ranks = static_cast<std::uint32_t>(size_);
  header->stage_bytes = kStageBytes;
}

std::shared_ptr<SharedSegment> SharedSegment::of_threads(int size) {
  require_size(size);
  std::shared_ptr<SharedSegment> result(new SharedSegment(size, -1));
  result->start();
  return result;
}

std::shared_ptr<SharedSegment> SharedSegment::join(c10d::Store& store, int rank, int size,
                                                   std::chrono::milliseconds timeout) {
  require_size(size);
  const auto deadline = Clock::now() + timeout;
  return rank == 0 ? serve(store, size, deadline) : come(store, rank, size, deadline);
}

std::shared_ptr<SharedSegment> SharedSegment::serve(c10d::Store& store, int size,
                                                    Deadline deadline) {
  const auto socket = local_socket();
  const auto name = random_name();
  sockaddr_un address;
  const auto length = local_address(name, address);
  if (bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), length) != 0
      || listen(socket.fd(), kMostSharedRanks) != 0)
    fail_by_system("rank 0 cannot listen");
  const auto file = sealed_file(size);
  std::shared_ptr<SharedSegment> result(new SharedSegment(size, file.fd()));
  result->start();
  store.set(kKey, std::vector<std::uint8_t>(name.begin(), name.end()));
  const auto peers = admit_all(socket, size, deadline);
  std::vector<Socket> alive; // once sent, only the receiving rank holds its end
  for (int i = 0; i < size; ++i) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      fail_by_system("no pipe");
    result->lives_.emplace_back(ends[0]);
    alive.emplace_back(ends[1]);
  }
  for (std::size_t i = 1; i < peers.size(); ++i) {
    std::vector<int> fds{file.fd(), alive[i].fd()};
    for (const auto& life : result->lives_)
      fds.push_back(life.fd());
    if (!send_fds(peers[i], fds))
      fail(rank_name(static_cast<int>(i)) + " left during the rendezvous");
  }
  result->alive_ = std::move(alive[0]);
  return result;
}

std::shared_ptr<SharedSegment> SharedSegment::come(c10d::Store& store, int rank, int size,
                                                   Deadline deadline) {
  std::vector<std::uint8_t> name;
  try {
    name = store.get(kKey);
  } catch (const std::exception& error) {
    fail("rank 0 did not join the rendezvous: " + std::string(error.what()));
  }
  const auto socket = local_socket();
  sockaddr_un address;
  const auto length = local_address(std::string(name.begin(), name.end()), address);
  if (connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), length) != 0)
    fail_by_system(rank_name(rank)
                   + " cannot reach rank 0, which must run on the same host (and in the same "
                     "network namespace); use tcp between hosts");
  Hello hello;
  hello.rank = rank;
  hello.size = size;
  if (!same_user(socket) || send(socket.fd(), &hello, sizeof hello, MSG_NOSIGNAL) < 0)
    fail("rank 0 runs as another user or has ended; start all ranks as one user");
  std::vector<Socket> fds;
  if (wait_for_events(socket.fd(), POLLIN, deadline))
    fds = receive_fds(socket, static_cast<std::size_t>(size) + 2);
  if (fds.size() != static_cast<std::size_t>(size) + 2)
    fail("rank 0 gave " + rank_name(rank)
         + " no memory: it ended, waits for another rank, or was started for another size");
  struct stat status {};
  if (fstat(fds[0].fd(), &status) != 0
      || static_cast<std::size_t>(status.st_size) != segment_bytes(size)
      || (fcntl(fds[0].fd(), F_GET_SEALS) & kSeals) != kSeals)
    fail("rank 0's memory has another size; run the same version on all ranks");
  std::shared_ptr<SharedSegment> result(new SharedSegment(size, fds[0].fd()));
  const auto& header = result->header();
  if (header.magic != SharedHeader::kMagic || header.ranks != static_cast<std::uint32_t>(size)
      || header.stage_bytes != kStageBytes)
    fail("rank 0's memory has another layout; run the same version on all ranks");
  result->alive_ = std::move(fds[1]);
  for (std::size_t i = 2; i < fds.size(); ++i)
    result->lives_.push_back(std::move(fds[i]));
  return result;
}

std::byte* SharedSegment::small(int rank, std::size_t which) const {
  return bytes_ + header_bytes() + (2 * static_cast<std::size_t>(rank) + which) * kSmallBytes;
}

std::byte* SharedSegment::stage(int rank, std::size_t which) const {
  return small(size_, 0) + (2 * static_cast<std::size_t>(rank) + which) * kStageBytes;
}

int SharedSegment::dead() const {
  std::vector<pollfd> entries;
  for (const auto& life : lives_)
    entries.push_back({life.fd(), 0, 0});
  if (entries.empty() || poll(entries.data(), entries.size(), 0) <= 0)
    return -1;
  for (std::size_t rank = 0; rank < entries.size(); ++rank)
    if (entries[rank].revents & (POLLHUP | POLLERR))
      return static_cast<int>(rank);
  return -1;
}

} // namespace troupe::collectives
