#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace troupe::replay {

/// What went wrong on the disk. The text names the file, the place, the cause and the way out; what
/// had been stored before is as it was.
class StorageError : public std::runtime_error {
public:
  enum class Kind {
    full,    // no room: the disk, a quota, or a limit of our own. Try again when there is some
    system,  // the system refused for another reason: permissions, a failing disk
    damaged, // other bytes than were written, or fewer
    foreign, // not ours, or of another version
  };

  StorageError(Kind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}

  Kind kind() const { return kind_; }

  /// Of a call to the system that failed with `number` (errno); `what` names the file.
  static StorageError of_system(int number, const std::string& what) {
    const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
    return {full ? Kind::full : Kind::system,
            what + ": " + std::generic_category().message(number)
                + (full ? "; free space there or use a folder on another disk"
                        : "; mend that or use another folder")
                + ". What was stored before is intact"};
  }

private:
  Kind kind_;
};

} // namespace troupe::replay
