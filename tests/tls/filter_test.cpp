// SPDX-License-Identifier: MIT
// The filter against a server of OpenSSL's own: whom it trusts, what it says of whom it does not,
// and what it makes of bytes that come in pieces, are cut off or are none of TLS.
#include <doctest/doctest.h>
#include <openssl/err.h>
#include <openssl/tls1.h>

#include "support/text.hpp"
#include "tls/peers.hpp"

using namespace redlock::tls;
using redlock::Cause;
using redlock::TlsOptions;
using redlock::testing::contains;

namespace {

/// The sentence, if the connection fails for want of trust.
std::string refusal(const TlsOptions& options, const ServerContext& server,
                    const std::string& name = "node.example") {
  const Encounter met(options, server, name);
  REQUIRE(met.filter->state() == State::failed);
  CHECK(met.filter->cause() == Cause::tls);
  CHECK(met.filter->problem().find('\n') == std::string::npos);
  return met.filter->problem();
}

std::string refusal_of(const std::string& name, const Terms& terms) {
  return refusal(files().trusting(), ServerContext(files().authority.issue(name, terms)));
}

}  // namespace

TEST_CASE("bytes go both ways, in one piece or in any") {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{100'000}}) {
      const auto context = loaded(files().trusting());
      const auto peer = context->peer("node.example");
      const auto filter = connect(*peer);
      const ServerContext settings(files().node, version);
      ServerSide server(settings);
      converse(*filter, server, piece);
      REQUIRE_MESSAGE(filter->state() == State::open, filter->problem());
      const std::string request(100'000, 'q');
      filter->write(request);
      server.take(sent(*filter));
      CHECK(server.received == request);
      const std::string reply(50'000, 'r');
      const std::string encrypted = server.write(reply);
      std::string text;
      for (std::size_t at = 0; at < encrypted.size(); at += piece) {
        filter->take(std::string_view(encrypted).substr(at, piece));
        text += decrypted(*filter);
      }
      CHECK(text == reply);
    }
  }
}

TEST_CASE("the name may be a host name or an address, with what does not belong to it") {
  const ServerContext server(files().node);
  for (const char* name : {"node.example", "node.example.", "10.0.0.1"}) {
    const Encounter met(files().trusting(), server, name);
    CHECK_MESSAGE(met.filter->state() == State::open, name, ": ", met.filter->problem());
    const char* const asked_for = SSL_get_servername(met.side.get(), TLSEXT_NAMETYPE_host_name);
    if (std::string(name) == "10.0.0.1") {
      CHECK(asked_for == nullptr);
    } else {
      CHECK(std::string(asked_for) == "node.example");
    }
  }
  const ServerContext ipv6(files().authority.issue("ipv6", {.names = {"IP:fe80::1"}}));
  CHECK(Encounter(files().trusting(), ipv6, "fe80::1%eth0").filter->state() == State::open);
}

TEST_CASE("a name that stands for others than itself is none") {
  const ServerContext server(files().authority.issue(
      "many", {.names = {"DNS:a.node.example", "DNS:*.other.example", "IP:10.0.0.1"}}));
  CHECK(Encounter(files().trusting(), server, "a.node.example").filter->state() == State::open);
  CHECK(Encounter(files().trusting(), server, "b.other.example").filter->state() == State::open);
  for (const char* name :
       {".node.example", ".", "..", "", "a.b.other.example", "a.node.example..", "010.0.0.1"}) {
    const Encounter met(files().trusting(), server, name);
    CHECK_MESSAGE(met.filter->state() == State::failed, std::string(name));
    CHECK(met.filter->cause() == Cause::tls);
  }
}

TEST_CASE("a certificate for another name is refused, and the names that it has are said") {
  const ServerContext server(files().node);
  for (const char* name : {"other.example", "10.0.0.2", "::1"}) {
    const std::string why = refusal(files().trusting(), server, name);
    CHECK(contains(why, std::string("its certificate is not for ") + name + " (it is for " +
                            "node.example, 10.0.0.1); correct the node's URI"));
  }
  CHECK(contains(refusal_of("nameless", {}), "(it has no subjectAltName)"));
  // The common name of the subject is no name of a host, whatever stands there.
  CHECK(contains(refusal_of("node.example", {}), "(it has no subjectAltName)"));
}

TEST_CASE("a certificate is refused before and after its time") {
  using std::chrono::hours;
  const std::vector<std::string> names{"DNS:node.example"};
  CHECK(contains(refusal_of("old", {names, hours(-48), hours(-24)}),
                 "its certificate has expired, on "));
  CHECK(contains(refusal_of("new", {names, hours(24), hours(48)}),
                 "its certificate is not valid before "));
}

TEST_CASE("a certificate of an authority that is not trusted is refused") {
  const Terms terms{.names = {"DNS:node.example"}};
  CHECK(contains(refusal(files().trusting(), ServerContext(files().stranger.issue("node", terms))),
                 "its certificate comes from an authority that is not trusted here"));
  CHECK(contains(refusal_of("alone", {.names = terms.names, .signed_by_itself = true}),
                 "its certificate is self-signed"));
  // Nor does the system trust it.
  CHECK(contains(refusal({}, ServerContext(files().node)), "authority that is not trusted here"));
}

TEST_CASE("a certificate that is signed by itself can be trusted by its own file") {
  const auto alone =
      files().authority.issue("alone", {.names = {"DNS:node.example"}, .signed_by_itself = true});
  const Encounter met({.ca = alone.certificate.string()}, ServerContext(alone), "node.example");
  CHECK_MESSAGE(met.filter->state() == State::open, met.filter->problem());
}

TEST_CASE("a node that wants a certificate of the client is told so, or shown one") {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ServerContext server(files().node, version);
    server.demand_certificates();
    CHECK(contains(refusal(files().trusting(), server), "it wants a certificate of this client"));
    const Encounter good(files().complete(), server, "node.example");
    CHECK_MESSAGE(good.filter->state() == State::open, good.filter->problem());
    const auto other = files().stranger.issue("client", {});
    TlsOptions with_other = files().trusting();
    with_other.certificate = other.certificate.string();
    with_other.key = other.key.string();
    CHECK(contains(refusal(with_other, server), "it refuses the certificate of this client"));
  }
}

TEST_CASE("a node that speaks nothing newer than TLS 1.1 is refused") {
  ServerContext old(files().node);
  SSL_CTX_set_security_level(old.get(), 0);
  SSL_CTX_set_min_proto_version(old.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(old.get(), TLS1_1_VERSION);
  CHECK(contains(refusal(files().trusting(), old), "it has no TLS 1.2 or newer in common"));
}

TEST_CASE("what is none of TLS is recognised by its first byte") {
  const auto context = loaded(files().trusting());
  const auto peer = context->peer("node.example");
  const auto answer = [&](const std::string& bytes) {
    const auto filter = connect(*peer);
    filter->take(bytes);
    CHECK_FALSE(filter->shake_hands());
    CHECK(filter->state() == State::failed);
    CHECK(filter->cause() == Cause::tls);
    return filter->problem();
  };
  CHECK(contains(answer("-ERR unknown command"), "it answers without TLS; write redis://"));
  CHECK(contains(answer("HTTP/1.1 400 Bad Request"), "the answer is not TLS"));
  CHECK(contains(answer(std::string(1, '\0')), "the answer is not TLS"));
  CHECK(contains(answer("\x16 rubbish of the right type"), "the TLS handshake failed: "));
}

TEST_CASE("a handshake that is cut off anywhere just waits, and any byte may be wrong") {
  const auto context = loaded(files().trusting());
  const auto peer = context->peer("node.example");
  const ServerContext settings(files().node, TLS1_2_VERSION);
  const auto first = connect(*peer);
  ServerSide model(settings);
  const std::size_t size = model.take(sent(*first)).size();
  for (std::size_t cut = 1; cut < size; cut += 97) {
    const auto filter = connect(*peer);
    ServerSide server(settings);
    std::string answer = server.take(sent(*filter));
    filter->take(answer.substr(0, cut));
    CHECK_FALSE(filter->shake_hands());
    CHECK(filter->state() == State::handshake);
    answer[cut] = static_cast<char>(answer[cut] ^ 0x55);
    filter->take(answer.substr(cut));
    CHECK_FALSE(filter->shake_hands());
    CHECK(filter->state() != State::open);
  }
}

TEST_CASE("a byte that was changed on its way ends the connection") {
  Encounter met(files().trusting(), ServerContext(files().node), "node.example");
  REQUIRE(met.filter->state() == State::open);
  std::string encrypted = met.side.write("+OK\r\n");
  encrypted.back() = static_cast<char>(encrypted.back() ^ 1);
  met.filter->take(encrypted);
  CHECK(decrypted(*met.filter).empty());
  CHECK(met.filter->state() == State::failed);
  CHECK(met.filter->cause() == Cause::protocol_error);
  CHECK(contains(met.filter->problem(), "it sent broken TLS"));
}

TEST_CASE("the end that a node announces is one, behind all that it sent before") {
  Encounter met(files().trusting(), ServerContext(files().node), "node.example");
  std::string bytes = met.side.write("+OK\r\n");
  SSL_shutdown(met.side.get());
  met.filter->take(bytes + met.side.output());
  CHECK(decrypted(*met.filter) == "+OK\r\n");
  CHECK(met.filter->state() == State::closed);
}

TEST_CASE("the end that the client announces reaches the node") {
  Encounter met(files().trusting(), ServerContext(files().node), "node.example");
  met.filter->close();
  met.side.take(sent(*met.filter));
  CHECK((SSL_get_shutdown(met.side.get()) & SSL_RECEIVED_SHUTDOWN) != 0);
}

TEST_CASE("a session is resumed by the next connection to the same node, and by no other") {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const ServerContext settings(files().node, version);
    const auto context = loaded(files().trusting());
    const auto peer = context->peer("node.example");
    const auto other = context->peer("node.example");
    for (int connection = 0; connection < 4; ++connection) {
      const auto filter = connect(*peer);
      ServerSide server(settings);
      converse(*filter, server);
      REQUIRE(filter->state() == State::open);
      CHECK(filter->resumed() == (connection > 0));
      CHECK((SSL_session_reused(server.get()) == 1) == (connection > 0));
    }
    const auto filter = connect(*other);
    ServerSide server(settings);
    converse(*filter, server);
    CHECK_FALSE(filter->resumed());
  }
}

TEST_CASE("a chain of resumptions ends with the certificate that was verified at its beginning") {
  using std::chrono::hours;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const ServerContext settings(
        files().authority.issue("brief", {.names = {"DNS:node.example"}, .valid_until = hours(10)}),
        version);
    const auto context = loaded(files().trusting());
    const auto peer = context->peer("node.example");
    const auto first = std::chrono::system_clock::now();
    for (const auto later : {hours(0), hours(4), hours(9)}) {
      const auto filter = connect(*peer, later);
      ServerSide server(settings);
      converse(*filter, server);
      REQUIRE(filter->state() == State::open);
      CHECK(filter->resumed() == (later > hours(0)));
      REQUIRE(filter->trusted_by());
      CHECK_FALSE(filter->trusted_by()->of_authority);
      CHECK(filter->trusted_by()->ends > first + hours(9));
      CHECK(filter->trusted_by()->begins < first);
    }
    const auto filter = connect(*peer, hours(11));
    ServerSide server(settings);
    converse(*filter, server);
    CHECK_FALSE(filter->resumed());
    REQUIRE(filter->state() == State::failed);
    CHECK(contains(filter->problem(), "its certificate has expired, on "));
  }
}

TEST_CASE("a chain of resumptions ends with the certificate of the authority, if that ends first") {
  using std::chrono::hours;
  const ServerContext settings(
      files().authority.issue("long", {.names = {"DNS:node.example"}, .valid_until = hours(100)}));
  const auto context = loaded(files().trusting());
  const auto peer = context->peer("node.example");
  for (const auto later : {hours(0), hours(23), hours(25)}) {
    const auto filter = connect(*peer, later);
    ServerSide server(settings);
    converse(*filter, server);
    CHECK((filter->state() == State::open) == (later < hours(24)));
    CHECK(filter->resumed() == (later == hours(23)));
    if (filter->trusted_by()) CHECK(filter->trusted_by()->of_authority);
  }
}

TEST_CASE("a server that has forgotten the session makes a new one") {
  const auto context = loaded(files().trusting());
  const auto peer = context->peer("node.example");
  for (int start = 0; start < 3; ++start) {
    const ServerContext restarted(files().node);
    const auto filter = connect(*peer);
    ServerSide server(restarted);
    converse(*filter, server);
    CHECK(filter->state() == State::open);
    CHECK_FALSE(filter->resumed());
  }
}

TEST_CASE("errors that the calling thread had before disturb nothing, and none are left") {
  const auto context = loaded(files().trusting());
  const auto peer = context->peer("node.example");
  const auto filter = connect(*peer);
  const ServerContext settings(files().node);
  ServerSide server(settings);
  std::string answer = server.take(sent(*filter));
  ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
  filter->take(answer);
  CHECK(filter->shake_hands());
  CHECK(ERR_peek_error() == 0);
}
