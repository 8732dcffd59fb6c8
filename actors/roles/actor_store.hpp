#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages.pb.h"

namespace troupe::actors {

/// c10d's store for a learner in a separate process. It asks the head's RendezvousActor over the
/// process's existing connection. Waiting calls block the calling thread. Errors are
/// std::runtime_error that name the operation. Any thread; the actor system must outlive it.
class ActorStore : public c10d::Store {
public:
  /// `life`: the encoded Life of this process.
  ActorStore(caf::actor_system& system, RendezvousPort head, ProtoBytes life,
             std::chrono::milliseconds timeout);

  c10::intrusive_ptr<c10d::Store> clone() override;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> compareSet(const std::string& key,
                                       const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

private:
  struct Answer {
    std::vector<std::uint8_t> value;
    std::int64_t number = 0;
  };
  Answer ask(const wire::StoreRequest& request);

  caf::actor_system& system_;
  RendezvousPort head_;
  ProtoBytes life_;
};

} // namespace troupe::actors
