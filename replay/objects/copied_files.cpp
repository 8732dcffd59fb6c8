#include "replay/objects/copied_files.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include <openssl/evp.h>

#include "env/text/hexadecimal.hpp"
#include "env/whole_file.hpp"
#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBlock = 1 << 20;
constexpr std::size_t kMd5Digits = 32;

/// Returns the MD5 in an ETag; empty if the ETag is the digest of parts or something else.
std::string md5_in(const std::string& etag) {
  const bool quoted = etag.size() == kMd5Digits + 2 && etag.front() == '"' && etag.back() == '"';
  const std::string text = quoted ? etag.substr(1, kMd5Digits) : etag;
  const bool digits =
      text.size() == kMd5Digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  return digits ? text : "";
}

long long time_of(const fs::path& file) {
  return fs::last_write_time(file).time_since_epoch().count();
}

} // namespace

std::string md5_of(const fs::path& file) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  bool sound = context && EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) == 1;
  env::FileReader reader(file);
  std::vector<std::byte> block;
  while (sound && reader.left() > 0) {
    block.resize(std::min<std::uint64_t>(kBlock, reader.left()));
    if (!reader.read(block.data(), block.size()))
      throw StoreError(file.string() + " became shorter while it was read");
    sound = EVP_DigestUpdate(context.get(), block.data(), block.size()) == 1;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (!sound || EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1)
    throw StoreError("OpenSSL cannot compute an MD5, which verifies copies of objects; does its "
                     "configuration forbid it?");
  return env::hexadecimal({digest.data(), size});
}

std::string fetch_verified(ObjectStore& store, const std::string& bucket,
                           const StoredObject& object, const fs::path& file,
                           const std::function<void()>& on_part) {
  const std::string expected = md5_in(object.etag);
  const auto size = static_cast<std::uintmax_t>(object.bytes);
  std::string before;
  for (int attempt = 0; attempt < 3; ++attempt) { // a damaged partial file, then at most two copies
    if (fs::exists(file) && fs::file_size(file) > size)
      fs::remove(file);
    store.continue_file(bucket, object, file, on_part);
    std::string md5 = md5_of(file);
    if (expected.empty() || md5 == expected || md5 == before)
      return md5;
    before = std::move(md5);
    fs::remove(file);
  }
  throw StoreError("the object store returns s3://" + bucket + "/" + object.key
                   + " with different contents each time, never with the MD5 of its ETag, "
                   + expected + "; check the network and the store, and try again");
}

void write_record(const fs::path& record, const fs::path& folder,
                  const std::vector<FolderObject>& objects, const std::vector<std::string>& md5) {
  std::ostringstream text;
  for (std::size_t i = 0; i < objects.size(); ++i)
    text << objects[i].object.bytes << ' ' << time_of(folder / objects[i].name) << ' ' << md5[i]
         << ' ' << objects[i].name << '\n';
  const std::string bytes = text.str();
  env::WholeFileWriter writer(record);
  writer.write(bytes.data(), bytes.size());
  writer.commit();
}

std::vector<std::string> changed_files(const fs::path& record, const fs::path& folder,
                                       const std::vector<FolderObject>& objects) {
  struct Known {
    std::int64_t bytes = -1;
    long long time = 0;
    std::string md5{};
  };
  std::map<std::string, Known> known;
  std::ifstream in(record);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Known one;
    std::string name;
    if (words >> one.bytes >> one.time >> one.md5 && words.get() == ' '
        && std::getline(words, name))
      known[name] = one;
  }
  std::vector<std::string> changed;
  for (const auto& [name, object] : objects) {
    std::error_code error;
    const auto size = fs::file_size(folder / name, error);
    const Known& one = known[name];
    const bool same = !error && one.bytes == object.bytes
                      && size == static_cast<std::uintmax_t>(object.bytes)
                      && (time_of(folder / name) == one.time || md5_of(folder / name) == one.md5);
    if (!same)
      changed.push_back(name);
  }
  return changed;
}

} // namespace troupe::replay
