#pragma once

#include <chrono>
#include <string>
#include <vector>

/// Certificates of a deployment: an authority and the node certificates that it signs. They use the
/// elliptic curve P-256 and are PEM text in memory. Pure functions except for OpenSSL's random
/// numbers.
namespace troupe::actors {

struct SignedKey {
  std::string certificate; // PEM
  std::string secret;      // PEM, not encrypted
};

/// Makes an authority that is valid from five minutes before `now`, because clocks differ, until
/// `now` + `validity`.
SignedKey make_authority(std::chrono::system_clock::time_point now, std::chrono::hours validity);

/// Makes a certificate for either end of a connection, signed by `authority`.
SignedKey make_node(const SignedKey& authority, std::chrono::system_clock::time_point now,
                    std::chrono::hours validity);

struct CertificateInfo {
  std::string name;        // common name
  std::string fingerprint; // SHA-256, hexadecimal
  std::chrono::system_clock::time_point from;
  std::chrono::system_clock::time_point until;
};

/// Describes the certificates in `pem`, in order. Throws std::invalid_argument if there is none.
std::vector<CertificateInfo> describe_certificates(const std::string& pem);

/// Returns why the certificate in `node` (which also contains its secret key) cannot be used under
/// `authority` at `now`: there is none, the key does not match, another authority signed it, it is
/// not yet valid, or it has expired. Returns "" if it can.
std::string why_unusable(const std::string& node, const std::string& authority,
                         std::chrono::system_clock::time_point now);

/// Formats a time, for example "2026-11-22 10:00:00 UTC".
std::string time_text(std::chrono::system_clock::time_point time);

/// Returns `bytes` (at most 64) bytes from OpenSSL's generator, in hexadecimal.
std::string random_hex(int bytes);

} // namespace troupe::actors
