#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace troupe::replay {

/// An error of the disk. The text names the file, the place, the cause and the remedy. Data stored
/// earlier is unchanged.
class StorageError : public std::runtime_error {
public:
  enum class Kind {
    full,    // no space: the disk, a quota, or a configured limit. Retry once there is some
    system,  // the system refused for another reason: permissions, a failing disk
    damaged, // the bytes differ from those written, or are fewer
    foreign, // another program's, or of another version
  };

  StorageError(Kind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}

  Kind kind() const { return kind_; }

  /// For a system call that failed with `number` (errno); `what` names the file.
  static StorageError of_system(int number, const std::string& what) {
    const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
    return {full ? Kind::full : Kind::system,
            what + ": " + std::generic_category().message(number)
                + (full ? "; free space there or use a folder on another disk"
                        : "; fix that or use another folder")
                + ". What was stored before is intact"};
  }

private:
  Kind kind_;
};

} // namespace troupe::replay
