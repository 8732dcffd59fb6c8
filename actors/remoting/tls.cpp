#include "actors/remoting/tls.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <poll.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "actors/remoting/openssl_handles.hpp"

namespace troupe::actors {

namespace {

// A transport for OpenSSL, because its default one writes without MSG_NOSIGNAL.
int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int result_of(BIO* bio, ssize_t result, int retry) {
  BIO_clear_retry_flags(bio);
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(result);
}

int bio_write(BIO* bio, const char* bytes, int size) {
  return result_of(bio, ::send(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL),
                   BIO_FLAGS_WRITE);
}

int bio_read(BIO* bio, char* bytes, int size) {
  return result_of(bio, ::recv(socket_of(bio), bytes, static_cast<std::size_t>(size), 0),
                   BIO_FLAGS_READ);
}

long bio_control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

struct Method {
  BIO_METHOD* it = nullptr;
  Method() : it(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket")) {
    if (it == nullptr)
      return;
    BIO_meth_set_write(it, bio_write);
    BIO_meth_set_read(it, bio_read);
    BIO_meth_set_ctrl(it, bio_control);
  }
  ~Method() { BIO_meth_free(it); }
};

BIO* transport(int socket) {
  static const Method method; // immutable once made
  BIO* bio = openssl_must(BIO_new(method.it), "a TLS connection");
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio, 1);
  return bio;
}

void trust(SSL_CTX* context, const std::string& authority) {
  const Bio bio = pem_reader(authority);
  while (const Certificate one{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)})
    openssl_must(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one.get()),
                 "trusting an authority");
  ERR_clear_error(); // the end of the text is no error
}

void show(SSL_CTX* context, const std::string& node) {
  const Bio certificate_text = pem_reader(node);
  const Certificate certificate(openssl_must(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr), "a node certificate"));
  const Bio secret_text = pem_reader(node);
  const PrivateKey secret(openssl_must(
      PEM_read_bio_PrivateKey(secret_text.get(), nullptr, nullptr, nullptr), "a node key"));
  openssl_must(SSL_CTX_use_certificate(context, certificate.get()), "a node certificate");
  openssl_must(SSL_CTX_use_PrivateKey(context, secret.get()), "a node key");
  openssl_must(SSL_CTX_check_private_key(context), "a node key");
}

} // namespace

void TlsContext::Free::operator()(SSL_CTX* it) const {
  SSL_CTX_free(it);
}

TlsContext::TlsContext(const ClusterKeys& keys)
    : handle_(openssl_must(SSL_CTX_new(TLS_method()), "TLS")) {
  SSL_CTX* context = handle_.get();
  openssl_must(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION), "TLS 1.3");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Session resumption is off, so that no connection outlives a certificate. Early data is off, so
  // that nothing is sent before the peer is authenticated.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_max_early_data(context, 0);
  // Limits the bytes of a stranger's handshake.
  SSL_CTX_set_max_cert_list(context, 16 * 1024);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                                | SSL_MODE_RELEASE_BUFFERS);
  trust(context, keys.authority);
  show(context, keys.node);
}

void TlsSession::Free::operator()(SSL* it) const {
  SSL_free(it);
}

TlsSession::TlsSession(const TlsContext& context, int socket, Side side)
    : handle_(openssl_must(SSL_new(context.handle()), "a TLS connection")) {
  BIO* bio = transport(socket);
  SSL_set_bio(handle_.get(), bio, bio);
  if (side == Side::listens)
    SSL_set_accept_state(handle_.get());
  else
    SSL_set_connect_state(handle_.get());
}

TlsSession::State TlsSession::state_of(int result) {
  if (result > 0)
    return State::done;
  const int number = errno;
  switch (SSL_get_error(handle_.get(), result)) {
  case SSL_ERROR_WANT_READ:
    return State::wants_read;
  case SSL_ERROR_WANT_WRITE:
    return State::wants_write;
  case SSL_ERROR_ZERO_RETURN:
    why_ = "the peer closed the connection";
    break;
  case SSL_ERROR_SYSCALL:
    why_ = number != 0 && result < 0 ? std::strerror(number) : "the peer closed the connection";
    break;
  default:
    why_ = openssl_reason();
    if (const long verified = SSL_get_verify_result(handle_.get()); verified != X509_V_OK)
      why_ += std::string(" (") + X509_verify_cert_error_string(verified) + ")";
  }
  ERR_clear_error();
  return State::failed;
}

TlsSession::State TlsSession::handshake() {
  ERR_clear_error();
  return state_of(SSL_do_handshake(handle_.get()));
}

TlsSession::State TlsSession::read(void* into, std::size_t size, std::size_t& got) {
  ERR_clear_error();
  const int result =
      SSL_read(handle_.get(), into, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
  got = result > 0 ? static_cast<std::size_t>(result) : 0;
  return state_of(result);
}

TlsSession::State TlsSession::write(const void* from, std::size_t size, std::size_t& sent) {
  ERR_clear_error();
  const int result =
      SSL_write(handle_.get(), from, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
  sent = result > 0 ? static_cast<std::size_t>(result) : 0;
  return state_of(result);
}

std::size_t TlsSession::pending() const {
  return static_cast<std::size_t>(SSL_pending(handle_.get()));
}

bool TlsSession::has_received() const {
  return BIO_number_read(SSL_get_rbio(handle_.get())) > 0;
}

bool wait_for_socket(int socket, TlsSession::State state,
                     std::chrono::steady_clock::time_point deadline) {
  pollfd item{socket,
              static_cast<short>(state == TlsSession::State::wants_write ? POLLOUT : POLLIN), 0};
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return false;
    if (::poll(&item, 1, static_cast<int>(std::min<long>(left.count(), 60'000))) > 0)
      return true;
  }
}

} // namespace troupe::actors
