#include "env/pool/cpu_list.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <system_error>

#include "env/text/joined.hpp"

namespace troupe::env {

namespace {

std::string text(const std::vector<int>& cpus) {
  return cpus.empty() ? "none" : joined(cpus);
}

} // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set))
      cpus.push_back(cpu);
  return cpus;
}

void check_cpus(const char* key, const std::vector<int>& cpus, int threads) {
  if (cpus.empty())
    return;
  const std::string said = std::string(key) + " is " + text(cpus);
  if (static_cast<int>(cpus.size()) != threads)
    throw std::invalid_argument(said + "; it must name one processor for each of the "
                                + std::to_string(threads)
                                + " threads that the pool starts, or none to leave them unpinned");
  const std::vector<int> allowed = allowed_cpus();
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    if (std::find(allowed.begin(), allowed.end(), cpus[i]) == allowed.end())
      throw std::invalid_argument(said + "; this process may use " + text(allowed));
    if (std::find(cpus.begin(), cpus.begin() + static_cast<std::ptrdiff_t>(i), cpus[i])
        != cpus.begin() + static_cast<std::ptrdiff_t>(i))
      throw std::invalid_argument(said + "; it must name each processor once");
  }
}

void pin_thread(std::jthread& thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (const int error = pthread_setaffinity_np(thread.native_handle(), sizeof set, &set))
    throw std::runtime_error("a thread of the pool could not be pinned to processor "
                             + std::to_string(cpu) + ": " + std::system_category().message(error));
}

} // namespace troupe::env
