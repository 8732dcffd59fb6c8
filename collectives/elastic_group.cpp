#include "collectives/elastic_group.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <thread>

#include <ATen/ops/full.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace troupe::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{10};
constexpr int kAttempts = 16; // generations in a row that do not form
constexpr std::size_t kLongestReason = 500;

std::string first_line(const std::string& text) { // LibTorch's errors carry a page of stack
  return text.substr(0, std::min(text.find('\n'), kLongestReason));
}

std::int64_t whole(const std::string& text) {
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int place_in(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

} // namespace

template <class Ask>
auto ElasticGroup::ask(Ask question) {
  try {
    return question();
  } catch (const std::exception& error) {
    throw CollectiveError("group " + id_ + ": the rendezvous does not answer ("
                          + first_line(error.what())
                          + "), so the group ends; let a launcher serve it, for it must outlive "
                            "every rank");
  }
}

ElasticGroup::ElasticGroup(c10::intrusive_ptr<c10d::Store> store, const std::string& id,
                           Options options)
    : store_(c10::make_intrusive<c10d::PrefixStore>(id, std::move(store))),
      id_(id),
      options_(std::move(options)) {
  const auto require = [&](bool held, const std::string& rule) {
    if (!held)
      throw std::invalid_argument("elastic group \"" + id + "\": " + rule);
  };
  require(static_cast<bool>(options_.factory), "a factory is needed, e.g. gloo_over_store()");
  require(options_.min_size >= 1 && options_.max_size >= options_.min_size,
          "min_size " + std::to_string(options_.min_size) + " must be at least 1, and max_size "
              + std::to_string(options_.max_size) + " at least min_size");
  require(options_.admit_every >= 1,
          "admit_every " + std::to_string(options_.admit_every) + " must be at least 1");
  require(options_.regroup_deadline.count() > 0 && options_.communicator.timeout.count() > 0
              && options_.communicator.connect_timeout.count() > 0,
          "regroup_deadline, timeout and connect_timeout must be positive");
  // Who waits in vain for one to form a generation comes to the next before the others give it up.
  options_.communicator.connect_timeout =
      std::min(options_.communicator.connect_timeout, options_.regroup_deadline / 2);
  life_ = std::make_unique<LifeLine>(options_.host);
  store_->setTimeout(options_.communicator.connect_timeout);
}

ElasticGroup::ElasticGroup(c10::intrusive_ptr<c10d::Store> store, const std::string& id, int rank,
                           int size, Options options)
    : ElasticGroup(std::move(store), id, std::move(options)) {
  if (size < options_.min_size || size > options_.max_size || rank < 0 || rank >= size)
    throw std::invalid_argument("elastic group \"" + id + "\": rank " + std::to_string(rank)
                                + " of " + std::to_string(size) + "; the size must be in ["
                                + std::to_string(options_.min_size) + ", "
                                + std::to_string(options_.max_size) + "] and the rank below it");
  name_ = std::to_string(rank);
  ask([&] { store_->set("life/" + name_, life_->address()); });
  for (int i = 0; i < size; ++i)
    list_.names.push_back(std::to_string(i));
  publish(0, list_);
  if (const auto others = published(0).names.size(); others != list_.names.size())
    throw std::invalid_argument("elastic group \"" + id + "\": size " + std::to_string(size)
                                + " here, " + std::to_string(others)
                                + " at another founder; start all with the same");
  std::string why;
  if (!form(0, list_, why))
    settle(why);
}

int ElasticGroup::member() const {
  constexpr int kNewcomers = 1 << 16; // the most founders
  const bool newcomer = name_.starts_with('+');
  return newcomer ? kNewcomers + std::stoi(name_.substr(1)) : std::stoi(name_);
}

std::unique_ptr<ElasticGroup> ElasticGroup::join(c10::intrusive_ptr<c10d::Store> store,
                                                 const std::string& id, Options options,
                                                 milliseconds patience) {
  std::unique_ptr<ElasticGroup> group(new ElasticGroup(std::move(store), id, std::move(options)));
  auto& kept = *group->store_;
  const auto number = std::to_string(group->ask([&] { return kept.add("newcomers", 1); }));
  group->name_ = "+" + number;
  group->ask([&] { kept.set("life/" + group->name_, group->life_->address()); });
  group->ask([&] { kept.set("newcomer/" + number, std::string("waits")); });
  if (!group->wait_for("admitted/" + group->name_, patience)) {
    group->ask([&] { return kept.deleteKey("newcomer/" + number); });
    throw std::runtime_error("group " + id + ": the members let no newcomer in within "
                             + std::to_string(patience.count())
                             + " ms; do they call admit_newcomers(), and is there room below "
                               "their max_size?");
  }
  const auto generation =
      whole(group->ask([&] { return kept.get_to_str("admitted/" + group->name_); }));
  if (generation < 1)
    throw CollectiveError("group " + id + ": the store holds no generation for " + group->name_
                          + "; is the id that of another program?");
  group->membership_.generation = generation - 1; // what it is compared with
  group->list_ = group->published(generation - 1);
  const auto list = group->published(generation);
  std::string why;
  if (!group->form(generation, list, why))
    group->settle(why);
  return group;
}

std::string ElasticGroup::key(std::int64_t generation, const std::string& what) const {
  return std::to_string(generation) + "/" + what;
}

/// Until the key is there, or `enough`, or time is up: whether it is there.
bool ElasticGroup::wait_for(const std::string& wanted, milliseconds patience,
                            const std::function<bool()>& enough) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    if (ask([&] { return store_->check({wanted}); }))
      return true;
    if (Clock::now() >= deadline || (enough && enough()))
      return false;
    std::this_thread::sleep_for(kLook); // a waiting call of LibTorch's prints a page at its timeout
  }
}

/// Whether every member that has not come is known to be dead. keys[i] of list_.names[i].
bool ElasticGroup::all_dead(const std::vector<std::string>& keys,
                            std::map<std::string, Watch>& watches) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (ask([&] { return store_->check({keys[i]}); }))
      continue;
    const auto& name = list_.names[i];
    auto watch = watches.find(name);
    if (watch == watches.end() && ask([&] { return store_->check({"life/" + name}); }))
      watch =
          watches.try_emplace(name, ask([&] { return store_->get_to_str("life/" + name); })).first;
    if (watch == watches.end() || !watch->second.dead())
      return false;
  }
  return true;
}

/// Writes the list unless one is there already, with the newcomers that wait and fit.
void ElasticGroup::publish(std::int64_t generation, List list) {
  const auto waiting = ask([&] { return store_->add("newcomers", 0); });
  while (generation > 0 && list.taken < waiting
         && static_cast<int>(list.names.size()) < options_.max_size) {
    const auto number = std::to_string(++list.taken);
    if (!ask([&] { return store_->check({"newcomer/" + number}); }))
      continue; // it gave up
    if (!Watch(ask([&] { return store_->get_to_str("life/+" + number); })).dead())
      list.names.push_back("+" + number);
  }
  std::string text = std::to_string(list.taken);
  for (const auto& name : list.names)
    text += " " + name;
  ask([&] { return store_->compareSet(key(generation, "members"), "", text); });
}

ElasticGroup::List ElasticGroup::published(std::int64_t generation) {
  std::istringstream text(ask([&] { return store_->get_to_str(key(generation, "members")); }));
  List list;
  std::string name;
  text >> list.taken;
  while (text >> name)
    list.names.push_back(name);
  if (list.names.empty() || list.taken < 0)
    throw CollectiveError("group " + id_ + ": the store holds no list of members of generation "
                          + std::to_string(generation) + "; is the id that of another program?");
  return list;
}

/// The list of members of `generation`, on which those of the one before agree.
ElasticGroup::List ElasticGroup::meet(std::int64_t generation, const std::string& reason) {
  ask([&] { store_->set(key(generation, "here/" + name_), first_line(reason)); });
  std::vector<std::string> keys;
  for (const auto& name : list_.names)
    keys.push_back(key(generation, "here/" + name));
  const auto wanted = key(generation, "members");
  // The last to come finds all there, and publishes; else who waited longest does.
  if (ask([&] { return store_->check(keys); })) {
    publish(generation, list_);
  } else if (std::map<std::string, Watch> watches; !wait_for(
                 wanted, options_.regroup_deadline, [&] { return all_dead(keys, watches); })) {
    List here{{}, list_.taken};
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (ask([&] { return store_->check({keys[i]}); }))
        here.names.push_back(list_.names[i]);
    publish(generation, here);
  }
  return published(generation);
}

/// Becomes a member of the generation on `list`, whose communicator is made here. False, with the
/// reason, when it does not form: another one has died meanwhile.
bool ElasticGroup::form(std::int64_t generation, List list, std::string& why) {
  const auto before = std::exchange(list_, list);
  tried_ = generation;
  const auto size = static_cast<int>(list.names.size());
  const int rank = place_in(list.names, name_);
  if (rank < 0)
    throw LeftOut("group " + id_ + ": the others went on without this process in generation "
                  + std::to_string(generation) + " with " + std::to_string(size)
                  + " members, for it did not come within their "
                  + std::to_string(options_.regroup_deadline.count())
                  + " ms; end it, or join again as a newcomer");
  if (size < options_.min_size)
    throw CollectiveError(
        "group " + id_ + ": " + std::to_string(size) + " of " + std::to_string(before.names.size())
        + " members are left, but min_size is " + std::to_string(options_.min_size)
        + "; start it again from its last checkpoint, or allow fewer");
  for (const auto& name : list.names)
    if (place_in(before.names, name) < 0) // every member says so: one of them may die
      ask([&] { store_->set("admitted/" + name, std::to_string(generation)); });
  try {
    communicator_ =
        options_.factory(c10::make_intrusive<c10d::PrefixStore>(key(generation, "data"), store_),
                         rank, size, options_.communicator);
    communicator_->barrier();
  } catch (const std::exception& error) {
    communicator_.reset();
    why = "generation " + std::to_string(generation) + " did not form: " + first_line(error.what());
    return false;
  }
  Membership next{generation, rank, size, {}, {}, {}};
  const auto& then = generation == 0 ? list.names : published(membership_.generation).names;
  for (std::size_t i = 0; i < then.size(); ++i)
    if (place_in(list.names, then[i]) < 0)
      next.left.push_back(static_cast<int>(i));
  for (int i = 0; i < size; ++i) {
    next.rank_then.push_back(place_in(then, list.names[static_cast<std::size_t>(i)]));
    if (next.rank_then.back() < 0)
      next.came.push_back(i);
  }
  membership_ = next;
  return true;
}

const Membership& ElasticGroup::settle(const std::string& reason) {
  std::string why = reason;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto generation = tried_ + 1;
    const auto list = meet(generation, why);
    communicator_.reset();
    if (form(generation, list, why))
      return membership_;
  }
  throw CollectiveError("group " + id_ + ": " + std::to_string(kAttempts)
                        + " generations in a row did not form, the last because: " + why
                        + "; can the members reach each other?");
}

const Membership& ElasticGroup::regroup(const std::string& reason) {
  if (communicator_)
    communicator_->abort("the group is formed anew: " + first_line(reason));
  communicator_.reset();
  return settle(reason);
}

std::optional<Membership> ElasticGroup::admit_newcomers() {
  if (++looks_ % options_.admit_every != 0)
    return std::nullopt;
  std::int64_t waiting = 0;
  if (membership_.rank == 0 && membership_.size < options_.max_size)
    waiting = ask([&] { return store_->add("newcomers", 0); }) > list_.taken ? 1 : 0;
  auto flag = at::full({1}, waiting, at::TensorOptions(at::kLong).device(options_.device));
  communicator_->broadcast(flag, 0);
  if (flag.item<std::int64_t>() == 0)
    return std::nullopt;
  return settle("newcomers");
}

int most_advanced_rank(Communicator& communicator, std::int64_t step, at::Device device) {
  const auto all =
      communicator.all_gather(at::full({1}, step, at::TensorOptions(at::kLong).device(device)));
  int best = 0;
  std::int64_t most = -1;
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank)
    if (const auto its = all[static_cast<std::size_t>(rank)].item<std::int64_t>(); its > most) {
      most = its;
      best = rank;
    }
  return best;
}

} // namespace troupe::collectives
