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

/// The shared memory of one socket: links peers and moves frames between them. A dealer sends a
/// hello in a message, and the router answers with the name of a listener. The dealer connects to
/// it, and if both processes have the same user, they exchange their heaps. If any step fails,
/// frames stay in messages. The link ends with the connection. Used by one thread; never waits.
class Sharing {
public:
  /// Throws std::invalid_argument if an option is out of range.
  Sharing(const SharedMemory& options, bool routed);

  /// For a dealer: returns the control part to send now, if any. There is one at first, then one at
  /// growing intervals until a router answers.
  std::optional<std::string> greeting(Deadline now);
  /// Handles a hello or an offer. Returns the control part to answer with, if any.
  std::optional<std::string> answer(const Control& control, const std::string& peer);

  /// Returns memory for a frame to `peer`, or null.
  std::shared_ptr<SharedBlock> allocate(const std::string& peer, std::size_t size);
  /// Removes the frames that go through shared memory from a message. Returns the control part to
  /// put in front of it, or an empty string if no frame was removed.
  std::string move_out(const std::string& peer, std::vector<Frame>& frames);
  /// Inserts the received frames into a message. Returns false if the message is lost.
  bool move_in(const Control& control, const std::string& peer, std::vector<Frame>& frames);

  /// Readable when pump() has something to do.
  int descriptor() const { return events_.number(); }
  void pump();
  /// Unmaps the memory of peers that have been gone for a second. Call it when nothing is left to
  /// receive.
  void sweep(Deadline now);

  const SharedCounters& counters() const { return counters_; }

private:
  struct Link {
    Descriptor connection;
    Token token = {};
    std::string peer; // of the dealer, at a router
    std::shared_ptr<SharedHeap> out;
    std::shared_ptr<SharedMapping> in;
    bool can_send = false;                          // the peer has mapped `out`
    std::optional<Deadline> gone_at = std::nullopt; // `in` is then kept for messages in flight
    std::uint64_t sequence = 0;
    bool owes_sequence = false; // frames were sent inline since the last sequence number
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
  std::map<int, Descriptor> strangers_; // connections that have not sent their token yet
  std::map<Token, std::unique_ptr<Link>> links_;
  std::unordered_map<int, Link*> by_number_;
  std::unordered_map<std::string, Link*> by_peer_; // a dealer has one, under ""
  std::optional<Token> greeted_;                   // for a dealer: the token of its hello
  Deadline next_greeting_ = {};
  std::chrono::seconds greeting_pause_{1};
  bool some_gone_ = false;
  SharedCounters counters_;
};

} // namespace troupe::env::wire
