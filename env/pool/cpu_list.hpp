#pragma once

#include <thread>
#include <vector>

namespace troupe::env {

/// The processors that this process may use.
std::vector<int> allowed_cpus();

/// Throws std::invalid_argument, naming `key`, unless `cpus` is empty or has one allowed processor
/// for each of `threads` threads, none twice.
void check_cpus(const char* key, const std::vector<int>& cpus, int threads);

/// Keeps `thread` on processor `cpu`; throws std::runtime_error when the system refuses.
void pin_thread(std::jthread& thread, int cpu);

} // namespace troupe::env
