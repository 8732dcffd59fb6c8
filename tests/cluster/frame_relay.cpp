// Carries Ethernet frames between two interfaces with delay and loss in each direction, like netem,
// for kernels without it. Usage: frame_relay INTERFACE INTERFACE. Each line of standard input,
// "DELAY_MS LOSS_PERCENT", sets the values from then on, and is answered by a line once they apply.
// At the end of the input it prints the numbers of frames carried and lost. Losses are drawn from a
// fixed seed. Frames keep their order. The queue is bounded, as in a router, and drops what exceeds
// it. Needs CAP_NET_RAW.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostWaiting = 16 << 20; // bytes in each direction
constexpr std::size_t kLongestFrame = 1 << 17; // bytes, with the kernel's header

struct Frame {
  Clock::time_point due;
  std::vector<char> bytes;
};

struct Direction {
  int from = -1;
  int to = -1;
  std::deque<Frame> waiting = {};
  std::size_t bytes = 0;
};

struct Link {
  Clock::duration delay{};
  double loss = 0; // probability
  long carried = 0;
  long lost = 0;
  std::mt19937 random{1}; // NOLINT: the same losses every time
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "frame_relay: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

/// Opens the interface for all incoming frames, including what the kernel knows of their checksums.
int open_interface(const char* name) {
  const int handle = ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
  if (handle < 0)
    fail("a packet socket");
  const int yes = 1;
  const int buffer = 8 << 20;
  if (::setsockopt(handle, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof yes) != 0)
    fail("PACKET_VNET_HDR");
  ::setsockopt(handle, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
  ::setsockopt(handle, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(name));
  if (address.sll_ifindex == 0)
    fail(name);
  if (::bind(handle, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    fail(name);
  packet_mreq all{};
  all.mr_ifindex = address.sll_ifindex;
  all.mr_type = PACKET_MR_PROMISC;
  if (::setsockopt(handle, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0)
    fail("promiscuous mode");
  return handle;
}

void take_in(Direction& way, Link& link) {
  static std::vector<char> bytes(kLongestFrame);
  while (true) {
    sockaddr_ll from{};
    socklen_t size = sizeof from;
    const ssize_t count = ::recvfrom(way.from, bytes.data(), bytes.size(), 0,
                                     reinterpret_cast<sockaddr*>(&from), &size);
    if (count <= 0)
      return;
    if (from.sll_pkttype == PACKET_OUTGOING)
      continue; // sent by this program
    // Without the address of a host the kernel says "no route" after three questions, which is not
    // what a lossy link shall test.
    const bool can_be_lost = from.sll_protocol != htons(ETH_P_ARP);
    if ((can_be_lost && std::uniform_real_distribution<>(0, 1)(link.random) < link.loss)
        || way.bytes + static_cast<std::size_t>(count) > kMostWaiting) {
      ++link.lost;
      continue;
    }
    auto due = Clock::now() + link.delay;
    if (!way.waiting.empty())
      due = std::max(due, way.waiting.back().due);
    way.bytes += static_cast<std::size_t>(count);
    way.waiting.push_back({due, {bytes.data(), bytes.data() + count}});
  }
}

void send_due(Direction& way, Link& link) {
  const auto now = Clock::now();
  while (!way.waiting.empty() && way.waiting.front().due <= now) {
    const Frame& frame = way.waiting.front();
    const bool sent = ::send(way.to, frame.bytes.data(), frame.bytes.size(), 0) >= 0;
    ++(sent ? link.carried : link.lost); // a full queue drops frames, like an unplugged cable
    way.bytes -= frame.bytes.size();
    way.waiting.pop_front();
  }
}

/// Reads and applies a line of input. Returns false at the end of the input.
bool take_order(Link& link) {
  static std::string text;
  char bytes[256];
  const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (count <= 0)
    return false;
  text.append(bytes, static_cast<std::size_t>(count));
  for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
    const std::string line = text.substr(0, end);
    double delay = 0;
    double loss = 0;
    if (std::sscanf(line.c_str(), "%lf %lf", &delay, &loss) != 2 || !(delay >= 0 && delay <= 60'000)
        || !(loss >= 0 && loss <= 100)) {
      std::printf("\"%s\" is not a delay in ms up to 60000 and a loss from 0 to 100 %%\n",
                  line.c_str());
    } else {
      link.delay = std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double, std::milli>(delay));
      link.loss = loss / 100;
      std::printf("delay %g ms, loss %g %%\n", delay, loss);
    }
    std::fflush(stdout);
  }
  return true;
}

} // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "Usage: frame_relay INTERFACE INTERFACE\n");
    return 2;
  }
  const int left = open_interface(words[1]);
  const int right = open_interface(words[2]);
  Direction ways[2] = {{left, right}, {right, left}};
  Link link;
  pollfd ready[3] = {{left, POLLIN, 0}, {right, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  while (true) {
    auto next = Clock::time_point::max();
    for (const Direction& way : ways)
      if (!way.waiting.empty())
        next = std::min(next, way.waiting.front().due);
    timespec limit{};
    if (next != Clock::time_point::max()) {
      const auto wait = std::max(Clock::duration::zero(), next - Clock::now());
      limit.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(wait).count();
      limit.tv_nsec = std::chrono::nanoseconds(wait % std::chrono::seconds(1)).count();
    }
    ::ppoll(ready, 3, next == Clock::time_point::max() ? nullptr : &limit, nullptr);
    if (ready[2].revents != 0 && !take_order(link))
      break;
    for (Direction& way : ways) {
      take_in(way, link);
      send_due(way, link);
    }
  }
  std::printf("carried %ld frames, lost %ld\n", link.carried, link.lost);
  return 0;
}
