#include "actors/remoting/certificates.hpp"

#include <array>
#include <ctime>

#include <openssl/pem.h>
#include <openssl/rand.h>

#include "actors/remoting/openssl_handles.hpp"
#include "env/text/hexadecimal.hpp"

namespace troupe::actors {

namespace {

using WallClock = std::chrono::system_clock;
constexpr std::chrono::minutes kSkew{5};

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

int no_passphrase(char*, int, int, void*) {
  return -1; // refuse instead of prompting at the terminal
}

Certificate next_certificate(const Bio& bio) {
  Certificate read(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error(); // the end of the text is not an error
  return read;
}

PrivateKey read_secret(const std::string& pem) {
  const Bio bio = pem_reader(pem);
  PrivateKey read(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return read;
}

void extend(X509* certificate, X509* issuer, int which, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, OpenSslFree> extension(
      openssl_must(X509V3_EXT_conf_nid(nullptr, &context, which, value), "a certificate's use"));
  openssl_must(X509_add_ext(certificate, extension.get(), -1), "a certificate's use");
}

void set_serial(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  openssl_must(RAND_bytes(bytes.data(), bytes.size()), "random numbers");
  bytes[0] &= 0x7fU; // keep the number positive
  BIGNUM* number =
      openssl_must(BN_bin2bn(bytes.data(), bytes.size(), nullptr), "a certificate's serial number");
  const bool set = BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  openssl_must(set ? 1 : 0, "a certificate's serial number");
}

void set_times(X509* certificate, WallClock::time_point now, std::chrono::hours validity) {
  const auto from = WallClock::to_time_t(now - kSkew);
  const auto until = WallClock::to_time_t(now + validity);
  openssl_must(ASN1_TIME_set(X509_getm_notBefore(certificate), from), "a certificate's time");
  openssl_must(ASN1_TIME_set(X509_getm_notAfter(certificate), until), "a certificate's time");
}

Certificate unsigned_certificate(const std::string& name, EVP_PKEY* key, WallClock::time_point now,
                                 std::chrono::hours validity) {
  Certificate made(openssl_must(X509_new(), "a certificate"));
  openssl_must(X509_set_version(made.get(), X509_VERSION_3), "a certificate's version");
  set_serial(made.get());
  set_times(made.get(), now, validity);
  openssl_must(X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                                          reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                                          -1, 0),
               "a certificate's name");
  openssl_must(X509_set_pubkey(made.get(), key), "a certificate's key");
  return made;
}

SignedKey sign(const Certificate& certificate, EVP_PKEY* own, EVP_PKEY* signer) {
  if (X509_sign(certificate.get(), signer, EVP_sha256()) == 0)
    throw std::runtime_error("signing a certificate: " + openssl_reason());
  const Bio public_part(openssl_must(BIO_new(BIO_s_mem()), "writing PEM"));
  openssl_must(PEM_write_bio_X509(public_part.get(), certificate.get()), "writing a certificate");
  const Bio secret(openssl_must(BIO_new(BIO_s_mem()), "writing PEM"));
  openssl_must(
      PEM_write_bio_PKCS8PrivateKey(secret.get(), own, nullptr, nullptr, 0, nullptr, nullptr),
      "writing a key");
  return {text_of(public_part), text_of(secret)};
}

PrivateKey new_key() {
  return PrivateKey(openssl_must(EVP_EC_gen("P-256"), "making a key"));
}

WallClock::time_point time_of(const ASN1_TIME* time) {
  std::tm parts{};
  openssl_must(ASN1_TIME_to_tm(time, &parts), "a certificate's time");
  return WallClock::from_time_t(timegm(&parts));
}

CertificateInfo describe(X509* certificate) {
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                            name.size());
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  openssl_must(X509_digest(certificate, EVP_sha256(), digest.data(), &size), "a fingerprint");
  return {name.data(), env::hexadecimal({digest.data(), size}),
          time_of(X509_get0_notBefore(certificate)), time_of(X509_get0_notAfter(certificate))};
}

/// Returns "" if `authority` has signed `certificate` and it is valid at `now` for either end of a
/// connection; otherwise the reason.
std::string verify(X509* certificate, const std::string& authority, WallClock::time_point now) {
  const std::unique_ptr<X509_STORE, OpenSslFree> store(
      openssl_must(X509_STORE_new(), "a list of authorities"));
  const Bio bio = pem_reader(authority);
  while (const Certificate trusted = next_certificate(bio))
    openssl_must(X509_STORE_add_cert(store.get(), trusted.get()), "a list of authorities");
  for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
    const std::unique_ptr<X509_STORE_CTX, OpenSslFree> context(
        openssl_must(X509_STORE_CTX_new(), "verifying a certificate"));
    openssl_must(X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr),
                 "verifying a certificate");
    X509_STORE_CTX_set_time(context.get(), 0, WallClock::to_time_t(now));
    X509_STORE_CTX_set_purpose(context.get(), purpose);
    if (X509_verify_cert(context.get()) != 1) {
      ERR_clear_error();
      return X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
    }
  }
  return "";
}

} // namespace

SignedKey make_authority(WallClock::time_point now, std::chrono::hours validity) {
  const PrivateKey key = new_key();
  const Certificate made =
      unsigned_certificate("troupe authority " + random_hex(4), key.get(), now, validity);
  openssl_must(X509_set_issuer_name(made.get(), X509_get_subject_name(made.get())),
               "a certificate's issuer");
  extend(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(made.get(), made.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(made.get(), made.get(), NID_subject_key_identifier, "hash");
  return sign(made, key.get(), key.get());
}

SignedKey make_node(const SignedKey& authority, WallClock::time_point now,
                    std::chrono::hours validity) {
  const Certificate issuer = next_certificate(pem_reader(authority.certificate));
  const PrivateKey signer = read_secret(authority.secret);
  if (!issuer || !signer || X509_check_private_key(issuer.get(), signer.get()) != 1)
    throw std::invalid_argument("the authority's certificate and secret key do not match");
  const PrivateKey key = new_key();
  const Certificate made =
      unsigned_certificate("troupe node " + random_hex(4), key.get(), now, validity);
  openssl_must(X509_set_issuer_name(made.get(), X509_get_subject_name(issuer.get())),
               "a certificate's issuer");
  extend(made.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  extend(made.get(), issuer.get(), NID_key_usage, "critical,digitalSignature");
  extend(made.get(), issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth");
  extend(made.get(), issuer.get(), NID_subject_key_identifier, "hash");
  extend(made.get(), issuer.get(), NID_authority_key_identifier, "keyid");
  return sign(made, key.get(), signer.get());
}

std::vector<CertificateInfo> describe_certificates(const std::string& pem) {
  const Bio bio = pem_reader(pem);
  std::vector<CertificateInfo> found;
  while (const Certificate certificate = next_certificate(bio))
    found.push_back(describe(certificate.get()));
  if (found.empty())
    throw std::invalid_argument("holds no certificate (PEM)");
  return found;
}

std::string why_unusable(const std::string& node, const std::string& authority,
                         WallClock::time_point now) {
  const Certificate certificate = next_certificate(pem_reader(node));
  if (!certificate)
    return "it holds no certificate (PEM)";
  const PrivateKey secret = read_secret(node);
  if (!secret)
    return "it holds no secret key (PEM, without a passphrase)";
  if (X509_check_private_key(certificate.get(), secret.get()) != 1) {
    ERR_clear_error();
    return "its certificate and secret key do not match";
  }
  return verify(certificate.get(), authority, now);
}

std::string time_text(WallClock::time_point time) {
  const std::time_t seconds = WallClock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

std::string random_hex(int bytes) {
  std::array<unsigned char, 64> made{};
  if (bytes < 0 || bytes > static_cast<int>(made.size()))
    throw std::invalid_argument("random_hex: at most 64 bytes, not " + std::to_string(bytes));
  openssl_must(RAND_bytes(made.data(), bytes), "random numbers");
  return env::hexadecimal({made.data(), static_cast<std::size_t>(bytes)});
}

} // namespace troupe::actors
