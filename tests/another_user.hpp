#pragma once

#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::tests {

/// Makes only the calling thread act as another user of this host. Needs root.
class AnotherUser {
public:
  static constexpr uid_t kNumber = 65534;
  AnotherUser() : is_root_(::geteuid() == 0) { become(kNumber); }
  ~AnotherUser() { become(0); }
  AnotherUser(const AnotherUser&) = delete;
  AnotherUser& operator=(const AnotherUser&) = delete;
  explicit operator bool() const { return is_root_; }

private:
  void become(uid_t user) const { // seteuid() would affect every thread
    if (is_root_)
      ::syscall(SYS_setresuid, -1, user, -1);
  }
  bool is_root_;
};

} // namespace troupe::tests
