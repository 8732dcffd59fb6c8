#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>

namespace troupe::testing {

/// Returns the TCP ports (IPv4) on which this process listens, each with its address: 0x7f000001 is
/// 127.0.0.1.
inline std::map<int, unsigned> listening_ports() {
  std::set<std::string> own;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    own.insert(std::filesystem::read_symlink(entry.path(), ignored).string());
  }
  std::map<int, unsigned> ports;
  std::ifstream table("/proc/self/net/tcp");
  std::string line;
  std::getline(table, line); // column names
  while (std::getline(table, line)) {
    std::istringstream columns(line);
    std::string number, local, remote, state, skipped, inode;
    columns >> number >> local >> remote >> state;
    for (int i = 0; i < 5; ++i)
      columns >> skipped;
    columns >> inode;
    if (state == "0A" && own.contains("socket:[" + inode + "]"))
      ports[std::stoi(local.substr(9), nullptr, 16)] =
          __builtin_bswap32(static_cast<unsigned>(std::stoul(local.substr(0, 8), nullptr, 16)));
  }
  return ports;
}

} // namespace troupe::testing
