#include "collectives/mesh/group_key.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/random.h>

namespace troupe::collectives {
namespace {

constexpr const char* kRandomKey = "troupe/random"; // key in the store
constexpr std::size_t kRandomBytes = 32;

struct FreeKdf {
  void operator()(EVP_KDF* it) const { EVP_KDF_free(it); }
  void operator()(EVP_KDF_CTX* it) const { EVP_KDF_CTX_free(it); }
};

} // namespace

void require_trust(const GroupTrust& trust, const std::string& host, const std::string& what) {
  if (!trust.secret.empty() || trust.private_store || trust.trusted_network
      || resolves_to_loopback(host))
    return;
  throw std::invalid_argument(
      "other hosts reach " + host + ", " + what
      + ", and nothing keeps strangers out of its group: make keys "
        "with `troupe keys cluster DIR` and set TROUPE_KEYS=DIR in every process, or set "
        "TROUPE_TRUSTED_NETWORK=1 where no other host or user reaches the network");
}

void require_trusted_network(const GroupTrust& trust, const std::string& host,
                             const std::string& what) {
  if (trust.trusted_network || resolves_to_loopback(host))
    return;
  throw std::invalid_argument(what + " neither encrypts nor authenticates what it sends from "
                              + host
                              + " to other hosts: set TROUPE_TRUSTED_NETWORK=1 in every process "
                                "(of a cluster: trusted_network: true) where no other host or "
                                "user reaches the network, or choose the backend tcp or "
                                "hierarchical");
}

GroupKey derive_group_key(std::span<const std::byte> random, const std::string& secret) {
  std::vector<unsigned char> input(random.size());
  std::transform(random.begin(), random.end(), input.begin(),
                 [](std::byte byte) { return static_cast<unsigned char>(byte); });
  input.insert(input.end(), secret.begin(), secret.end());
  const std::unique_ptr<EVP_KDF, FreeKdf> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const std::unique_ptr<EVP_KDF_CTX, FreeKdf> context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  char digest[] = "SHA256", purpose[] = "troupe collectives 1";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, input.data(), input.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, purpose, sizeof purpose - 1),
      OSSL_PARAM_construct_end()};
  GroupKey key;
  const bool derived =
      context
      && EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(key.data()), key.size(),
                        parameters)
             == 1;
  OPENSSL_cleanse(input.data(), input.size());
  if (!derived)
    throw std::runtime_error("OpenSSL cannot derive a key by HKDF for the group's connections");
  return key;
}

GroupKey share_group_key(c10d::Store& store, int rank, const GroupTrust& trust) {
  std::vector<std::uint8_t> random(kRandomBytes);
  if (rank == 0) {
    // These bytes are a secret, not a seed: they never influence a number of the run.
    if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
      throw std::runtime_error("the system provides no random bytes for the group's key");
    store.set(kRandomKey, random);
  } else {
    random = store.get(kRandomKey);
    if (random.size() != kRandomBytes)
      throw std::runtime_error("the rendezvous holds the data of another program; does the port "
                               "belong to this group's rank 0?");
  }
  return derive_group_key(std::as_bytes(std::span(random)), trust.secret);
}

} // namespace troupe::collectives
