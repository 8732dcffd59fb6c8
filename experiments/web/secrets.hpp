#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::experiments::web {

/// 32 random bytes from the system, in hexadecimal. Throws std::runtime_error.
std::string new_token();

/// Reads the token from `file`. If the file does not exist, creates it with a new token (mode
/// 0600). Throws std::invalid_argument if other users can read or own the file, or it contains no
/// token. Exception: the file may be root's, and then its group may read it.
std::string token_of(const std::filesystem::path& file);

/// Compares in a time that depends only on the length.
bool equal_secrets(std::string_view one, std::string_view other);

} // namespace troupe::experiments::web
