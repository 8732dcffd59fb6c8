#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::experiments::web {

/// 32 random bytes of the system in hexadecimal. Throws std::runtime_error.
std::string new_token();

/// The token in `file`, which is made with a new one (mode 0600) if it does not exist. Throws
/// std::invalid_argument if others can read the file or it contains no token.
std::string token_of(const std::filesystem::path& file);

/// Takes the same time for any text of the same length.
bool equal_secrets(std::string_view one, std::string_view other);

} // namespace troupe::experiments::web
