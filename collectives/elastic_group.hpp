#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "collectives/life_line.hpp"
#include "collectives/over_store.hpp"

namespace troupe::collectives {

/// The others have gone on without this process, for it came too late. It has no part in their
/// results; it ends, or joins again as a newcomer.
class LeftOut : public CollectiveError {
public:
  using CollectiveError::CollectiveError;
};

/// The members of a generation, and what changed from the one before.
struct Membership {
  std::int64_t generation = 0;
  int rank = 0; // of this process
  int size = 0;
  std::vector<int> left;      // ranks of the generation before that are gone
  std::vector<int> came;      // ranks of newcomers
  std::vector<int> rank_then; // [rank] in the generation before; -1 for a newcomer
};

/// A group that outlives its members: after a CollectiveError the survivors meet in the store,
/// agree on who is left, and go on with a new communicator and dense ranks in the old order.
/// Newcomers are taken in when the members say so. One thread per member.
///
/// Agreement: for each generation one list of members is written, once (the store's compareSet), by
/// whoever finds first that all have come, that the others are dead, or that the deadline has
/// passed. Who is not on it is
/// out, however alive; a generation that cannot form its communicator is followed by the next. The
/// store must outlive the members: RendezvousServer in a launcher. Where rank 0 serves it, its loss
/// ends the group, and the error says so.
class ElasticGroup {
public:
  struct Options {
    StoreFactory factory; // gloo_over_store(), …
    CommunicatorOptions communicator;
    int min_size = 1; // fewer survivors give up with an error
    int max_size = 1 << 16;
    std::string host = "127.0.0.1"; // of this process, that the others reach
    /// How long survivors wait for one that does not come and is not known to be dead: frozen, or
    /// its host gone. Longer than the longest time between two collectives of a rank plus the
    /// communicator's timeout, by which a failure is noticed.
    std::chrono::milliseconds regroup_deadline{30'000};
    int admit_every = 1;          // calls of admit_newcomers() for one look
    at::Device device = at::kCPU; // of the backend's tensors
  };

  /// Founds group `id` as rank `rank` of `size`, with a client of the store of its own. Throws
  /// std::invalid_argument for options out of range or a size that others say differently,
  /// CollectiveError when fewer than min_size come.
  ElasticGroup(c10::intrusive_ptr<c10d::Store> store, const std::string& id, int rank, int size,
               Options options);

  /// Joins the group as a newcomer: returns when the members have let it in; membership() says
  /// which rank it is. Throws std::runtime_error when that takes longer than `patience`.
  static std::unique_ptr<ElasticGroup> join(c10::intrusive_ptr<c10d::Store> store,
                                            const std::string& id, Options options,
                                            std::chrono::milliseconds patience);

  /// Of the generation now. Replaced by regroup() and admit_newcomers(): hold no reference over
  /// them.
  Communicator& communicator() { return *communicator_; }
  std::int64_t generation() const { return membership_.generation; }
  const Membership& membership() const { return membership_; }
  /// This member's number, which nobody else of the group has or will have: a founder's first rank,
  /// above all founders' for a newcomer.
  int member() const;

  /// After a CollectiveError, on every survivor: ends the communicator on all ranks with `reason`
  /// and forms the next generation; newcomers that wait come in as well. Throws LeftOut for one
  /// that came too late, CollectiveError when fewer than min_size are left or the store is gone.
  const Membership& regroup(const std::string& reason);

  /// By every member at the same step: lets waiting newcomers in, if any. Costs one broadcast and
  /// one question of rank 0 to the store every admit_every calls, else nothing. The new membership,
  /// or nothing when nobody waited.
  std::optional<Membership> admit_newcomers();

private:
  struct List { // of members, in the order of their ranks, as the store has it
    std::vector<std::string> names;
    std::int64_t taken = 0; // newcomers that have been taken into this or an earlier list
  };

  ElasticGroup(c10::intrusive_ptr<c10d::Store> store, const std::string& id, Options options);

  const Membership& settle(const std::string& reason);
  bool form(std::int64_t generation, List list, std::string& why);
  List meet(std::int64_t generation, const std::string& reason);
  void publish(std::int64_t generation, List list);
  List published(std::int64_t generation);
  std::string key(std::int64_t generation, const std::string& what) const;
  template <class Ask>
  auto ask(Ask question); // the store; an error of it is one of the group
  bool wait_for(const std::string& key, std::chrono::milliseconds patience,
                const std::function<bool()>& enough = {});
  bool all_dead(const std::vector<std::string>& keys, std::map<std::string, Watch>& watches);

  c10::intrusive_ptr<c10d::Store> store_;
  std::string id_;
  Options options_;
  std::unique_ptr<LifeLine> life_;
  std::string name_; // of this member: "0" a founder, "+1" a newcomer
  List list_;        // of the generation now, or of the last that was tried
  std::int64_t tried_ = 0;
  std::int64_t looks_ = 0;
  Membership membership_;
  std::unique_ptr<Communicator> communicator_;
};

/// The rank whose `step` is the highest, the lowest of several: from it the others take their
/// state. Collective; a newcomer gives -1.
int most_advanced_rank(Communicator& communicator, std::int64_t step, at::Device device = at::kCPU);

} // namespace troupe::collectives
