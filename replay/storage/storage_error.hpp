#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace troupe::replay {

/// A disk error. The message names the file, the position, the cause and the remedy. Data stored
/// earlier is unchanged.
class StorageError : public std::runtime_error {
public:
  enum class Kind {
    // The disk, a quota or a configured limit leaves no space; retry once there is some.
    full,
    system,  // another error of the operating system: permissions, a failing disk
    damaged, // the file is truncated, or its bytes differ from what was written
    foreign, // the file belongs to another program or version
  };

  StorageError(Kind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}

  Kind kind() const { return kind_; }

  /// Returns the error of a system call that failed with `number` (errno); `what` names the file.
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
