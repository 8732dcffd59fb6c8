#pragma once

#include <thread>
#include <vector>

namespace troupe::env {

/// The CPUs that this process may use.
std::vector<int> allowed_cpus();

/// Throws std::invalid_argument naming `key` unless `cpus` is empty or has one allowed CPU for each
/// of `threads` threads, without duplicates.
void check_cpus(const char* key, const std::vector<int>& cpus, int threads);

/// Pins `thread` to `cpu`. Throws std::runtime_error if the system refuses.
void pin_thread(std::jthread& thread, int cpu);

} // namespace troupe::env
