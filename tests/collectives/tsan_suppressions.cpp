// LibTorch is not built with ThreadSanitizer: it does not see the atomics inside, and takes Gloo's
// I/O threads for racing. Only for programs that use Gloo; ranks as threads are checked in full.
#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:libtorch_cpu.so\nmutex:libtorch_cpu.so\nrace:c10::intrusive_ptr\nrace:c10::detail::"
         "\n";
}
#endif
