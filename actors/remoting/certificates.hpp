#pragma once

#include <chrono>
#include <string>
#include <vector>

/// Certificates of a deployment: an authority and the nodes' that it signs, elliptic curve P-256,
/// as PEM text in memory. Pure but for OpenSSL's random numbers.
namespace troupe::actors {

struct SignedKey {
  std::string certificate; // PEM
  std::string secret;      // PEM, not encrypted
};

/// Valid from five minutes before `now` (clocks differ) until `now` + `validity`.
SignedKey make_authority(std::chrono::system_clock::time_point now, std::chrono::hours validity);

/// A certificate for both ends of a connection, signed by `authority`.
SignedKey make_node(const SignedKey& authority, std::chrono::system_clock::time_point now,
                    std::chrono::hours validity);

struct CertificateInfo {
  std::string name;        // common name
  std::string fingerprint; // SHA-256, hexadecimal
  std::chrono::system_clock::time_point from;
  std::chrono::system_clock::time_point until;
};

/// Of the certificates in `pem`, in order. Throws std::invalid_argument if there is none.
std::vector<CertificateInfo> describe_certificates(const std::string& pem);

/// Why the certificate in `node` (with its secret) cannot be used under `authority` at `now`: no
/// certificate, another's secret, another authority, too early, expired. "" when it can.
std::string why_unusable(const std::string& node, const std::string& authority,
                         std::chrono::system_clock::time_point now);

/// "2026-11-22 10:00:00 UTC".
std::string time_text(std::chrono::system_clock::time_point time);

/// `bytes` (at most 64) from OpenSSL's generator, in hexadecimal.
std::string random_hex(int bytes);

} // namespace troupe::actors
