#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

namespace troupe::actors {

/// Deleters and owning pointers for OpenSSL's objects.
struct OpenSslFree {
  void operator()(BIO* it) const { BIO_free(it); }
  void operator()(EVP_PKEY* it) const { EVP_PKEY_free(it); }
  void operator()(X509* it) const { X509_free(it); }
  void operator()(X509_EXTENSION* it) const { X509_EXTENSION_free(it); }
  void operator()(X509_STORE* it) const { X509_STORE_free(it); }
  void operator()(X509_STORE_CTX* it) const { X509_STORE_CTX_free(it); }
};
using Bio = std::unique_ptr<BIO, OpenSslFree>;
using PrivateKey = std::unique_ptr<EVP_PKEY, OpenSslFree>;
using Certificate = std::unique_ptr<X509, OpenSslFree>;

/// Returns and clears the errors of this thread's last OpenSSL calls.
inline std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* text = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return text != nullptr ? text : "no reason given";
}

/// Throws std::runtime_error unless `result` is 1.
inline void openssl_must(int result, const char* what) {
  if (result != 1)
    throw std::runtime_error(std::string(what) + ": " + openssl_reason());
}

/// Throws std::runtime_error if `made` is null; otherwise returns it.
template <class T>
T* openssl_must(T* made, const char* what) {
  if (made == nullptr)
    throw std::runtime_error(std::string(what) + ": " + openssl_reason());
  return made;
}

/// Returns a reader of the text, which must outlive it.
inline Bio pem_reader(const std::string& pem) {
  return Bio(
      openssl_must(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), "reading PEM"));
}

} // namespace troupe::actors
