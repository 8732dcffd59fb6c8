#include "actors/roles/state_writes.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "actors/protocol/system.hpp"

namespace troupe::actors {

void StateWrites::add(Write write) {
  writes_.push_back(std::move(write));
  if (writes_.size() == 1)
    start();
}

void StateWrites::begin_checkpoint() {
  if (is_writing(true))
    throw std::runtime_error("a checkpoint of this actor is already being written");
  checkpoint_failure_ = {};
}

bool StateWrites::is_writing(bool checkpoint) const {
  return std::any_of(writes_.begin(), writes_.end(),
                     [checkpoint](const auto& one) { return one.checkpoint == checkpoint; });
}

void StateWrites::start() {
  began_ = std::chrono::steady_clock::now();
  self_->spawn<caf::detached>(
      [owner = caf::actor_cast<caf::actor>(self_),
       write = std::move(writes_.front().write)](caf::event_based_actor* thread) mutable {
        std::string problem;
        try {
          write();
        } catch (const std::exception& e) {
          problem = e.what();
        }
        write = nullptr; // frees the state here, not on the owner's thread
        thread->send(owner, written_atom_v, problem);
      });
}

void StateWrites::on_written(const std::string& problem) {
  const auto took = std::chrono::steady_clock::now() - began_;
  const Write write = std::move(writes_.front());
  writes_.pop_front();
  if (!writes_.empty())
    start();
  if (write.done)
    write.done(problem, took);
  if (!write.checkpoint)
    return;
  if (!problem.empty())
    checkpoint_failure_ = caf::make_error(Fault::failed, problem);
  for (auto& promise : std::exchange(waiting_, {}))
    if (problem.empty())
      promise.deliver(done_atom_v);
    else
      promise.deliver(checkpoint_failure_);
}

caf::result<done_atom> StateWrites::checkpoint_written() {
  if (is_writing(true)) {
    auto promise = self_->make_response_promise<done_atom>();
    waiting_.push_back(promise);
    return promise;
  }
  if (checkpoint_failure_)
    return checkpoint_failure_;
  return done_atom_v;
}

} // namespace troupe::actors
