// SPDX-License-Identifier: MIT
// OpenSSL's queue of errors belongs to the thread, which may be a caller's with errors of its own:
// it is emptied before each call that is judged by it, and left empty.
#include "tls/openssl/openssl_filter.hpp"

#include <arpa/inet.h>
#include <new>
#include <openssl/err.h>
#include <utility>

namespace redlock::tls {
namespace {

constexpr std::size_t bytes_at_a_time = std::size_t{64} << 10;

/// The types of TLS records: change_cipher_spec to heartbeat.
bool begins_record(char byte) {
  return byte >= 20 && byte <= 24;
}

/// An address is verified as such, and is never sent as the name of a server. OpenSSL's own reader
/// takes 010.0.0.1 for another address than the one to which the system connects.
bool is_address(const std::string& name) {
  in6_addr ignored{};  // room for both
  return inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &ignored) == 1;
}

}  // namespace

OpensslFilter::OpensslFilter(std::shared_ptr<const LoadedFiles> files, const std::string& name,
                             KeptSession& session, std::chrono::sys_seconds now,
                             std::string warning)
    : files_(std::move(files)),
      name_(name),
      session_(session),
      connection_(SSL_new(files_->context.get())) {
  warning_ = std::move(warning);
  BioHandle received(BIO_new(BIO_s_mem()));
  BioHandle to_send(BIO_new(BIO_s_mem()));
  if (!connection_ || !received || !to_send) {
    fail({"no memory for TLS"});
    return;
  }
  received_ = received.get();
  to_send_ = to_send.get();
  SSL_set_bio(connection_.get(), received.release(), to_send.release());
  SSL_set_app_data(connection_.get(), this);
  SSL_set_connect_state(connection_.get());
  SSL_set_verify(connection_.get(), SSL_VERIFY_PEER, &OpensslFilter::verify);
  SSL_set_cert_cb(connection_.get(), &OpensslFilter::note_request, this);
  if (!set_name()) {
    fail({"no certificate can have the name " + name_});
    return;
  }
  X509_VERIFY_PARAM_set_time(SSL_get0_param(connection_.get()),
                             std::chrono::system_clock::to_time_t(now));
  resume(now);
  static_cast<void>(OpensslFilter::shake_hands());  // it has nothing but its first message to send
}

OpensslFilter::~OpensslFilter() {
  if (!connection_) return;
  // Without an exchange of close_notify OpenSSL would give up the session, too; RESP shows that a
  // reply was cut off.
  if (state_ != State::failed) {
    SSL_set_shutdown(connection_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  }
  connection_.reset();
  ERR_clear_error();
}

bool OpensslFilter::set_name() {
  SSL* const connection = connection_.get();
  X509_VERIFY_PARAM* const terms = SSL_get0_param(connection);
  X509_VERIFY_PARAM_set_hostflags(
      terms, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (is_address(name_)) return X509_VERIFY_PARAM_set1_ip_asc(terms, name_.c_str()) == 1;
  // With a dot before it, a name would stand for every name that ends like it. Not SSL_set1_host,
  // which decides by itself whether the text is an address.
  return !name_.empty() && !name_.starts_with('.') &&
         X509_VERIFY_PARAM_set1_host(terms, name_.data(), name_.size()) == 1 &&
         SSL_set_tlsext_host_name(connection, name_.c_str()) == 1;
}

/// A ticket of TLS 1.3 is used once; the node sends new ones.
void OpensslFilter::resume(std::chrono::sys_seconds now) {
  auto& [session, files, trusted_by] = session_;
  if (!session || files != files_ || !trusted_by || now >= trusted_by->ends) {
    session_ = {};
    return;
  }
  SSL_set_session(connection_.get(), session.get());
  trusted_by_ = trusted_by;
  if (SSL_SESSION_get_protocol_version(session.get()) >= TLS1_3_VERSION) session.reset();
}

int OpensslFilter::keep_session(SSL* connection, SSL_SESSION* session) {
  auto* const self = static_cast<OpensslFilter*>(SSL_get_app_data(connection));
  self->note_trust();
  self->session_ = {SessionHandle(session), self->files_, self->trusted_by_};
  return 1;  // the reference is ours now
}

/// A resumed session relies on the verification of the first one.
void OpensslFilter::note_trust() {
  if (SSL_session_reused(connection_.get()) == 1) return;
  trusted_by_ = first_to_end(SSL_get0_verified_chain(connection_.get()));
}

int OpensslFilter::verify(int accepted, X509_STORE_CTX* verification) {
  if (accepted == 1) return 1;
  auto* const connection = static_cast<SSL*>(
      X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const self = static_cast<OpensslFilter*>(SSL_get_app_data(connection));
  try {
    self->problem_ = describe_refusal(*verification, self->name_);
  } catch (const std::bad_alloc&) {
    // No exception may pass through OpenSSL, whose own words are as good a reason.
  }
  return 0;
}

int OpensslFilter::note_request(SSL* /*connection*/, void* self) {
  static_cast<OpensslFilter*>(self)->asked_for_certificate_ = true;
  return 1;
}

void OpensslFilter::take(std::string_view encrypted) {
  if (state_ == State::failed || state_ == State::closed || encrypted.empty()) return;
  if (!std::exchange(began_, true) && !begins_record(encrypted.front())) {
    return fail({describe_plaintext(encrypted)});
  }
  std::size_t taken = 0;
  if (BIO_write_ex(received_, encrypted.data(), encrypted.size(), &taken) != 1) {
    fail({"no memory for TLS"});
  }
}

bool OpensslFilter::shake_hands() {
  if (state_ != State::handshake) return false;
  ERR_clear_error();
  const int result = SSL_do_handshake(connection_.get());
  if (result == 1) {
    resumed_ = SSL_session_reused(connection_.get()) == 1;
    note_trust();
    state_ = State::open;
  } else {
    judge(result);
  }
  collect_output();
  return state_ == State::open;
}

std::size_t OpensslFilter::read(char* into, std::size_t room) {
  if (state_ != State::open) return 0;
  ERR_clear_error();
  std::size_t count = 0;
  const int result = SSL_read_ex(connection_.get(), into, room, &count);
  if (result != 1) judge(result);
  collect_output();
  return result == 1 ? count : 0;
}

void OpensslFilter::write(std::string_view plain) {
  // In pieces, so that the BIO, which keeps its memory, does not become as large as the largest
  // burst.
  while (state_ == State::open && !plain.empty()) {
    const std::string_view piece = plain.substr(0, bytes_at_a_time);
    ERR_clear_error();
    std::size_t written = 0;
    const int result = SSL_write_ex(connection_.get(), piece.data(), piece.size(), &written);
    if (result != 1) judge(result);
    collect_output();
    plain.remove_prefix(piece.size());
  }
}

void OpensslFilter::close() {
  if (state_ != State::open) return;
  ERR_clear_error();
  SSL_shutdown(connection_.get());
  ERR_clear_error();
  collect_output();
  state_ = State::closed;
}

/// The meaning of a failed call.
void OpensslFilter::judge(int result) {
  const int error = SSL_get_error(connection_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return;
  if (error == SSL_ERROR_ZERO_RETURN) {
    state_ = State::closed;
    return;
  }
  if (!problem_.empty()) return fail({std::exchange(problem_, {})});
  fail(describe_error({.asked_for_certificate = asked_for_certificate_,
                       .has_certificate = SSL_get_certificate(connection_.get()) != nullptr,
                       .open = state_ == State::open}));
}

void OpensslFilter::fail(TlsFailure failure) {
  state_ = State::failed;
  problem_ = std::move(failure.problem);
  cause_ = failure.cause;
  if (cause_ == Cause::tls && !warning_.empty()) problem_ += "; " + warning_;
  session_ = {};
  ERR_clear_error();
}

/// An alert, too: it says to the node why the connection ends.
void OpensslFilter::collect_output() {
  if (to_send_ == nullptr) return;
  const std::size_t size = BIO_ctrl_pending(to_send_);
  if (size == 0) return;
  const std::size_t before = output_.size();
  output_.resize(before + size);
  // Not a reset, which would clear all the memory that the BIO has.
  std::size_t taken = 0;
  BIO_read_ex(to_send_, output_.data() + before, size, &taken);
  output_.resize(before + taken);
}

}  // namespace redlock::tls
