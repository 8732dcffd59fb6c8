#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "env/sockets/unix_channel.hpp"
#include "env/wire/context.hpp"
#include "env/wire/control.hpp"
#include "env/wire/frame.hpp"
#include "env/wire/shared_heap.hpp"
#include "env/wire/shared_mapping.hpp"
#include "env/wire/shared_memory.hpp"

namespace troupe::env::wire {

/// The shared memory of one socket: links peers and moves frames between them. A dealer says hello
/// in a message; the router's answer offers a name to connect to; over that connection, processes
/// of one user exchange their heaps. If any step fails, frames stay in messages. The link ends with
/// the connection. One thread; never waits.
class Sharing {
public:
  /// Throws std::invalid_argument on options out of range.
  Sharing(const SharedMemory& options, bool routed);

  /// For a dealer: the control part to send now, if any: at first, then at growing intervals until
  /// a router answers.
  std::optional<std::string> greeting(Deadline now);
  /// Handles a hello or an offer; returns the control part of the answer, if any.
  std::optional<std::string> answer(const Control& control, const std::string& peer);

  /// Memory for a frame to `peer`, or null.
  std::shared_ptr<SharedBlock> allocate(const std::string& peer, std::size_t size);
  /// Removes frames that go through shared memory from a message; returns the control part for its
  /// front, empty if none was removed.
  std::string move_out(const std::string& peer, std::vector<Frame>& frames);
  /// Inserts received frames. False: the message is lost.
  bool move_in(const Control& control, const std::string& peer, std::vector<Frame>& frames);

  /// Readable when pump() has something to do.
  int descriptor() const { return events_.number(); }
  void pump();
  /// Called when nothing is left to receive: unmaps the memory of peers that have been gone for a
  /// second.
  void sweep(Deadline now);

  const SharedCounters& counters() const { return counters_; }

private:
  struct Link {
    Descriptor connection;
    Token token = {};
    std::string peer; // of a router
    std::shared_ptr<SharedHeap> out;
    std::shared_ptr<SharedMapping> in;
    bool can_send = false;                          // the peer has mapped `out`
    std::optional<Deadline> gone_at = std::nullopt; // then `in` serves what is still on its way
    std::uint64_t sequence = 0;
    bool owes_sequence = false; // the peer has not heard of a sequence since frames were inline
  };

  Link* link_to(const std::string& peer);
  Link* link_of(const Token& token, const std::string& peer);
  std::optional<std::string> offer(const Token& token, const std::string& peer);
  void connect(const Token& token, const std::string& name);
  void accept_strangers();
  void on_stranger(int number);
  void on_link(Link& link);
  bool join(Link& link, const Packet& packet);
  static bool send_join(const Link& link);
  bool watch(int number) const;
  void drop(Link& link);

  SharedMemory options_;
  bool routed_;
  Descriptor events_;
  Descriptor listener_;
  std::string name_; // of the listener
  std::map<Token, std::string> offered_;
  std::map<int, Descriptor> strangers_; // connected, and have not said which token is theirs
  std::map<Token, std::unique_ptr<Link>> links_;
  std::unordered_map<int, Link*> by_number_;
  std::unordered_map<std::string, Link*> by_peer_; // of a dealer: the one of ""
  std::optional<Token> greeted_;                   // of a dealer: our hello
  Deadline next_greeting_ = {};
  std::chrono::seconds greeting_pause_{1};
  bool some_gone_ = false;
  SharedCounters counters_;
};

} // namespace troupe::env::wire
