#pragma once

namespace troupe::env {

/// Some virtual machines announce the matrix instructions of AMX but do not execute them, so that
/// oneDNN (in LibTorch) dies of SIGILL. This function limits oneDNN to the instructions without AMX
/// where executes_amx() is false. If ONEDNN_MAX_CPU_ISA is set, it does nothing. Call it before
/// other threads and before LibTorch computes.
void avoid_broken_amx();

/// Whether the processor announces AMX with bfloat16.
bool announces_amx();

/// Whether this process may use AMX with bfloat16. The first call tries the instructions in a child
/// process.
bool executes_amx();

/// Runs `trial` in a child process. Returns whether it returned true there.
bool succeeds_in_child(bool (*trial)());

} // namespace troupe::env
