#include "collectives/mesh/secure_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

namespace troupe::collectives {

struct FreeSsl {
  void operator()(SSL* it) const { SSL_free(it); }
  void operator()(SSL_CTX* it) const { SSL_CTX_free(it); }
  void operator()(SSL_SESSION* it) const { SSL_SESSION_free(it); }
  void operator()(BIO_METHOD* it) const { BIO_meth_free(it); }
};

namespace {

constexpr std::size_t kRecord = 16'384; // most data bytes in a TLS record
constexpr unsigned char kIdentity[] = "troupe group";
constexpr unsigned char kCipher[] = {0x13, 0x01}; // TLS_AES_128_GCM_SHA256

void must(bool held, const char* what) {
  if (held)
    return;
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  throw std::runtime_error(std::string("OpenSSL, ") + what + ": "
                           + (reason != nullptr ? reason : "no reason given"));
}

/// Returns the session for the pre-shared key, or null on failure.
SSL_SESSION* session_of(SSL* ssl) {
  const auto* key = static_cast<const GroupKey*>(SSL_get_app_data(ssl));
  std::unique_ptr<SSL_SESSION, FreeSsl> session(SSL_SESSION_new());
  const auto* cipher = SSL_CIPHER_find(ssl, kCipher);
  const auto* bytes = reinterpret_cast<const unsigned char*>(key->data());
  const bool made =
      session && cipher != nullptr
      && SSL_SESSION_set1_master_key(session.get(), bytes, key->size()) == 1
      && SSL_SESSION_set1_id_context(session.get(), kIdentity, sizeof kIdentity - 1) == 1
      && SSL_SESSION_set_cipher(session.get(), cipher) == 1
      && SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  return made ? session.release() : nullptr;
}

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* bytes,
              SSL_SESSION** session) {
  *identity = kIdentity;
  *bytes = sizeof kIdentity - 1;
  *session = session_of(ssl);
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char* identity, std::size_t bytes, SSL_SESSION** session) {
  const bool ours = bytes == sizeof kIdentity - 1 && std::memcmp(identity, kIdentity, bytes) == 0;
  *session = ours ? session_of(ssl) : nullptr;
  return ours && *session == nullptr ? 0 : 1; // an unknown identity makes the handshake fail
}

/// Returns the TLS settings, which contain no secret. There is no certificate, so a handshake
/// without the key fails.
SSL_CTX* settings() {
  static const std::unique_ptr<SSL_CTX, FreeSsl> made = [] {
    std::unique_ptr<SSL_CTX, FreeSsl> context(SSL_CTX_new(TLS_method()));
    must(context != nullptr, "SSL_CTX_new");
    must(SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1, "TLS 1.3");
    must(SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256") == 1, "the cipher");
    must(SSL_CTX_set1_groups_list(context.get(), "X25519:P-256") == 1, "the key exchange");
    must(SSL_CTX_set_num_tickets(context.get(), 0) == 1, "no tickets");
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
    must(SSL_CTX_set_session_id_context(context.get(), kIdentity, sizeof kIdentity - 1) == 1,
         "the session's context");
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr); // rejects a peer's certificate
    SSL_CTX_set_psk_use_session_callback(context.get(), offer_key);
    SSL_CTX_set_psk_find_session_callback(context.get(), find_key);
    return context;
  }();
  return made.get();
}

} // namespace

struct SecureSocket::State {
  Socket socket;
  GroupKey key{};
  std::vector<std::byte> inbox; // encrypted bytes read from the system
  std::size_t read = 0, end = 0, at_once = 0;
  std::vector<std::byte> outbox; // encrypted bytes still to send; at most one record
  std::size_t written = 0;
  bool more = false;
  bool left = false; // the peer has left
  bool in_the_clear = false;
  std::uint64_t bytes_of_keys = 0, sent = 0;
  std::unique_ptr<SSL, FreeSsl> ssl;

  /// Passes bytes to the system and returns how many it accepted.
  std::size_t push(std::span<const std::byte> bytes) {
    std::size_t taken = 0;
    while (taken < bytes.size() && !left) {
      const auto n = ::send(socket.fd(), bytes.data() + taken, bytes.size() - taken,
                            MSG_NOSIGNAL | (more ? MSG_MORE : 0));
      if (n > 0)
        taken += static_cast<std::size_t>(n);
      else if (errno == EAGAIN)
        break;
      else if (errno != EINTR)
        left = true;
    }
    return taken;
  }

  static State& of(BIO* bio) { return *static_cast<State*>(BIO_get_data(bio)); }

  static int write(BIO* bio, const char* data, int size) {
    State& state = of(bio);
    const auto bytes = std::as_bytes(std::span(data, static_cast<std::size_t>(size)));
    const auto taken = state.outbox.empty() ? state.push(bytes) : 0;
    if (!state.left)
      state.outbox.insert(state.outbox.end(), bytes.begin() + static_cast<std::ptrdiff_t>(taken),
                          bytes.end());
    return size; // errors are reported by reads: the peer's last bytes may still be there
  }

  /// Reads raw bytes from the system. Returns 0 if there are none or the peer has left.
  std::size_t pull(std::span<std::byte> to) {
    for (;;) {
      const auto n = ::recv(socket.fd(), to.data(), to.size(), 0);
      if (n > 0)
        return static_cast<std::size_t>(n);
      if (n < 0 && errno == EAGAIN)
        return 0;
      if (n == 0 || errno != EINTR) {
        left = true;
        return 0;
      }
    }
  }

  /// Takes bytes from the inbox and returns their number.
  std::size_t take(std::span<std::byte> to) {
    const auto n = std::min(end - read, to.size());
    std::memcpy(to.data(), inbox.data() + read, n);
    read += n;
    return n;
  }

  static int read_bytes(BIO* bio, char* data, int size) {
    State& state = of(bio);
    BIO_clear_retry_flags(bio);
    if (state.read == state.end) {
      state.read = 0;
      state.end = state.pull(state.inbox);
      if (state.end == 0 && !state.left)
        BIO_set_retry_read(bio);
      if (state.end == 0)
        return state.left ? 0 : -1;
    }
    return static_cast<int>(
        state.take(std::as_writable_bytes(std::span(data, static_cast<std::size_t>(size)))));
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static const BIO_METHOD* method() {
    static const std::unique_ptr<BIO_METHOD, FreeSsl> made = [] {
      std::unique_ptr<BIO_METHOD, FreeSsl> type(
          BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "troupe socket"));
      must(type != nullptr, "BIO_meth_new");
      BIO_meth_set_write(type.get(), write);
      BIO_meth_set_read(type.get(), read_bytes);
      BIO_meth_set_ctrl(type.get(), control);
      return type;
    }();
    return made.get();
  }
};

SecureSocket::SecureSocket() = default;
SecureSocket::SecureSocket(SecureSocket&&) noexcept = default;
SecureSocket& SecureSocket::operator=(SecureSocket&&) noexcept = default;

SecureSocket::~SecureSocket() {
  if (state_)
    OPENSSL_cleanse(state_->key.data(), state_->key.size());
}

SecureSocket::SecureSocket(Socket socket, Role role, const GroupKey& key, std::size_t read_bytes,
                           std::uint64_t bytes_of_keys)
    : state_(std::make_unique<State>()) {
  state_->socket = std::move(socket);
  state_->key = key;
  state_->at_once = read_bytes;
  state_->inbox.resize(std::min(read_bytes, kFewBytes)); // until the peer is authenticated
  state_->bytes_of_keys = bytes_of_keys;
  state_->ssl.reset(SSL_new(settings()));
  must(state_->ssl != nullptr, "SSL_new");
  BIO* bio = BIO_new(State::method());
  must(bio != nullptr, "BIO_new");
  BIO_set_data(bio, state_.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(state_->ssl.get(), bio, bio); // takes ownership of bio
  SSL_set_app_data(state_->ssl.get(), &state_->key);
  role == Role::client ? SSL_set_connect_state(state_->ssl.get())
                       : SSL_set_accept_state(state_->ssl.get());
}

int SecureSocket::fd() const {
  return state_ ? state_->socket.fd() : -1;
}

SecureSocket::Handshake SecureSocket::handshake() {
  flush();
  ERR_clear_error();
  const int result = SSL_do_handshake(state_->ssl.get());
  if (result == 1 && SSL_session_reused(state_->ssl.get()) == 1) {
    state_->inbox.resize(state_->at_once);
    return Handshake::done;
  }
  if (result == 1)
    return Handshake::refused;
  if (SSL_get_error(state_->ssl.get(), result) == SSL_ERROR_WANT_READ)
    return Handshake::waiting;
  ERR_clear_error();
  return state_->left ? Handshake::closed : Handshake::refused;
}

std::optional<std::size_t> SecureSocket::receive(std::span<std::byte> to) {
  if (to.empty())
    return 0;
  if (state_->in_the_clear) {
    const auto got = state_->read < state_->end ? state_->take(to) : state_->pull(to);
    return got == 0 && state_->left ? std::nullopt : std::optional(got);
  }
  ERR_clear_error();
  std::size_t got = 0;
  const int result = SSL_read_ex(state_->ssl.get(), to.data(), to.size(), &got);
  if (result == 1)
    return got;
  if (SSL_get_error(state_->ssl.get(), result) == SSL_ERROR_WANT_READ)
    return 0;
  ERR_clear_error();
  state_->left = true;
  return std::nullopt;
}

std::optional<std::size_t> SecureSocket::send(std::span<const std::byte> from) {
  if (!flush() || from.empty())
    return 0;
  if (state_->left)
    return std::nullopt;
  if (state_->in_the_clear) {
    const auto taken = state_->push(from);
    return taken == 0 && state_->left ? std::nullopt : std::optional(taken);
  }
  ERR_clear_error();
  if (state_->sent >= state_->bytes_of_keys) {
    must(SSL_key_update(state_->ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1, "SSL_key_update");
    state_->sent = 0;
  }
  const auto bytes = std::min(from.size(), kRecord);
  state_->more = bytes < from.size();
  std::size_t sent = 0;
  const int result = SSL_write_ex(state_->ssl.get(), from.data(), bytes, &sent);
  state_->more = false;
  if (result != 1 || state_->left) {
    ERR_clear_error();
    state_->left = true;
    return std::nullopt;
  }
  state_->sent += sent;
  return sent;
}

bool SecureSocket::flush() {
  State& state = *state_;
  if (state.outbox.empty())
    return true;
  state.written += state.push(std::span(state.outbox).subspan(state.written));
  if (state.written < state.outbox.size() && !state.left)
    return false;
  state.outbox.clear();
  state.written = 0;
  return true;
}

void SecureSocket::continue_in_the_clear() {
  state_->in_the_clear = true;
}

void SecureSocket::close_sending() {
  flush();
  shutdown(state_->socket.fd(), SHUT_WR);
}

bool send_all(SecureSocket& socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty() || !socket.flush()) {
    const auto sent = socket.send(bytes);
    if (!sent)
      return false;
    bytes = bytes.subspan(*sent);
    if (*sent == 0 && !wait_for_events(socket.fd(), POLLOUT, deadline))
      return false;
  }
  return true;
}

bool receive_all(SecureSocket& socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto got = socket.receive(bytes);
    if (!got || (*got == 0 && !wait_for_events(socket.fd(), POLLIN, deadline)))
      return false;
    bytes = bytes.subspan(*got);
  }
  return true;
}

SecureSocket::Handshake finish_handshake(SecureSocket& socket, Deadline deadline) {
  for (;;) {
    const auto state = socket.handshake();
    if (state != SecureSocket::Handshake::waiting
        || !wait_for_events(socket.fd(), POLLIN, deadline))
      return state;
  }
}

} // namespace troupe::collectives
