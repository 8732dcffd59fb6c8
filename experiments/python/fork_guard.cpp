#include "experiments/python/fork_guard.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

namespace troupe::python {
namespace {

std::atomic<unsigned> forks = 0; // counted in the child; calling getpid() would cost more

unsigned watched_forks() {
  static const int watched = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  if (watched != 0)
    throw std::runtime_error("cannot watch for forks");
  return forks;
}

} // namespace

ForkGuard::ForkGuard() : process_(getpid()), forks_(watched_forks()) {}

bool ForkGuard::in_fork() const {
  return forks.load(std::memory_order_relaxed) != forks_;
}

void ForkGuard::refuse(const char* what) const {
  throw std::runtime_error("the " + std::string(what) + " belongs to process "
                           + std::to_string(process_) + " and this is a fork of it, "
                           + std::to_string(getpid()) + "; make the " + what + " after the fork");
}

} // namespace troupe::python
