// SPDX-License-Identifier: MIT
// The files that a client is given: each that cannot serve ends as a sentence that names it. And
// files that change while a client runs: the next connection is made with the new ones, or, if they
// cannot serve, with those of before and a warning.
#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "support/processes.hpp"
#include "support/text.hpp"
#include "tls/peers.hpp"

using namespace redlock::tls;
using redlock::TlsOptions;
using redlock::testing::contains;
using redlock::testing::place;
using redlock::testing::text_in;

namespace {

namespace fs = std::filesystem;

std::string written(const std::string& name, const std::string& text) {
  const auto path = files().directory.path() / name;
  std::ofstream(path) << text;
  return path.string();
}

std::string problem(const TlsOptions& options) {
  const auto context = load(options);
  REQUIRE_FALSE(context.has_value());
  CHECK(context.error().find('\n') == std::string::npos);
  return context.error();
}

std::string problem_with_client(const std::string& certificate, const std::string& key) {
  TlsOptions options = files().trusting();
  options.certificate = certificate;
  options.key = key;
  return problem(options);
}

/// Copies that tests may replace.
struct RotatingFiles {
  explicit RotatingFiles(std::initializer_list<fs::path> authorities) {
    place(options.ca, authorities);
  }
  void trust(std::initializer_list<fs::path> authorities) const { place(options.ca, authorities); }
  void show(const IssuedCertificate& issued) {
    options.certificate = (directory.path() / "client.crt").string();
    options.key = (directory.path() / "client.key").string();
    place(options.certificate, {issued.certificate});
    place(options.key, {issued.key});
  }

  redlock::cluster::TemporaryDirectory directory{"redlock-tls-rotating"};
  TlsOptions options{.ca = (directory.path() / "ca.pem").string()};
};

const fs::path old_authority = files().authority.certificate();
const fs::path new_authority = files().stranger.certificate();

const ServerContext& old_node() {
  static const ServerContext server(files().node);
  return server;
}

const ServerContext& new_node() {
  static const ServerContext server(
      files().stranger.issue("node", {.names = {"DNS:node.example"}}));
  return server;
}

/// One client, and the connections that it makes to a node one after the other.
struct Node {
  explicit Node(const RotatingFiles& files)
      : context(loaded(files.options)), peer(context->peer("node.example")) {}

  TlsFilter& meet(const ServerContext& server) {
    side.emplace(server);
    filter = connect(*peer);
    converse(*filter, *side);
    return *filter;
  }
  [[nodiscard]] bool trusts(const ServerContext& server) {
    return meet(server).state() == State::open;
  }
  /// The name in the certificate that the client showed.
  std::string shown(const ServerContext& server) {
    REQUIRE_MESSAGE(meet(server).state() == State::open, filter->problem());
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(
        SSL_get1_peer_certificate(side->get()), &X509_free);
    REQUIRE(certificate);
    std::string name(100, ' ');
    const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()),
                                               NID_commonName, name.data(), 100);
    return name.substr(0, static_cast<std::size_t>(size));
  }

  std::shared_ptr<TlsContext> context;
  std::unique_ptr<TlsPeer> peer;
  std::unique_ptr<TlsFilter> filter{};
  std::optional<ServerSide> side{};
};

}  // namespace

TEST_CASE("authorities come from a file or from all files of a directory") {
  const auto folder = files().directory.path() / "authorities";
  fs::create_directory(folder);
  CHECK(problem({.ca = folder.string()}) ==
        "tls.ca: no file in " + folder.string() + " has a certificate in PEM form");
  fs::copy_file(files().authority.certificate(), folder / "one");
  fs::copy_file(files().stranger.certificate(), folder / "two");
  std::ofstream(folder / "README") << "no certificate";
  const ServerContext server(files().node);
  CHECK(Encounter({.ca = folder.string()}, server, "node.example").filter->state() == State::open);
  const ServerContext other(files().stranger.issue("node", {.names = {"DNS:node.example"}}));
  CHECK(Encounter({.ca = folder.string()}, other, "node.example").filter->state() == State::open);
}

TEST_CASE("a file of authorities that cannot serve is named") {
  CHECK(problem({.ca = "/nonexistent/ca.pem"}) ==
        "tls.ca: /nonexistent/ca.pem cannot be read: No such file or directory");
  const auto empty = written("empty", "");
  CHECK(problem({.ca = empty}) == "tls.ca: " + empty + " is empty");
  const auto text = written("text", "not a certificate");
  CHECK(problem({.ca = text}) == "tls.ca: " + text + " has no certificate in PEM form");
  CHECK(contains(problem({.ca = "/dev/zero"}), "is larger than 16 MiB"));
  std::string half = text_in(files().authority.certificate());
  const std::string whole = half;
  half.resize(half.size() / 2);
  const auto cut = written("cut", whole + half);
  CHECK(problem({.ca = cut}) == "tls.ca: " + cut + " has a certificate that is damaged");
  const auto folder = files().directory.path() / "damaged";
  fs::create_directory(folder);
  fs::copy_file(files().authority.certificate(), folder / "good");
  fs::copy_file(cut, folder / "cut");
  CHECK(contains(problem({.ca = folder.string()}), "/cut has a certificate that is damaged"));
}

TEST_CASE("a certificate or key that cannot serve is named") {
  const auto& [certificate, key] = files().client;
  CHECK(contains(problem_with_client("/nonexistent", key.string()),
                 "tls.certificate: /nonexistent cannot be read: "));
  CHECK(
      contains(problem_with_client(key.string(), key.string()), "has no certificate in PEM form"));
  CHECK(contains(problem_with_client(certificate.string(), "/nonexistent"),
                 "tls.key: /nonexistent cannot be read: "));
  CHECK(contains(problem_with_client(certificate.string(), certificate.string()),
                 "has no private key in PEM form"));
  CHECK(contains(problem_with_client(certificate.string(), files().node.key.string()),
                 "is not the key of the certificate in " + certificate.string()));
  CHECK(contains(problem_with_client(certificate.string(), files().directory.path().string()),
                 "is a directory; name a file"));
}

TEST_CASE("a key with a passphrase is refused, and nobody is asked for it") {
  const auto encrypted = written("encrypted.key",
                                 "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
                                 "-----END ENCRYPTED PRIVATE KEY-----\n");
  CHECK(contains(problem_with_client(files().client.certificate.string(), encrypted), "tls.key: "));
}

TEST_CASE("authorities are rotated by a file that has both for a while") {
  const RotatingFiles rotating({old_authority});
  Node node(rotating);
  CHECK(node.trusts(old_node()));
  CHECK_FALSE(node.trusts(new_node()));
  rotating.trust({old_authority, new_authority});
  CHECK(node.trusts(old_node()));
  CHECK(node.trusts(new_node()));
  rotating.trust({new_authority});
  CHECK_FALSE(node.trusts(old_node()));
  CHECK(node.trusts(new_node()));
}

TEST_CASE("the authorities of the system are rotated where SSL_CERT_FILE says that they are") {
  RotatingFiles rotating({old_authority});
  const redlock::testing::ScopedVariable of_system("SSL_CERT_FILE", rotating.options.ca);
  const fs::path named = std::exchange(rotating.options.ca, "");
  Node node(rotating);
  CHECK(node.trusts(old_node()));
  place(named, {new_authority});
  CHECK_FALSE(node.trusts(old_node()));
  CHECK(node.trusts(new_node()));
}

TEST_CASE("authorities are rotated in a directory, file by file") {
  RotatingFiles rotating({old_authority});
  const fs::path folder = rotating.directory.path() / "authorities";
  fs::create_directory(folder);
  fs::copy_file(old_authority, folder / "old");
  rotating.options.ca = folder.string();
  Node node(rotating);
  CHECK_FALSE(node.trusts(new_node()));
  fs::copy_file(new_authority, folder / "new");
  CHECK(node.trusts(old_node()));
  CHECK(node.trusts(new_node()));
  fs::remove(folder / "old");
  CHECK_FALSE(node.trusts(old_node()));
  CHECK(node.trusts(new_node()));
  // In place: the directory itself does not change.
  std::ofstream(folder / "new") << text_in(old_authority) << "\n";
  CHECK(node.trusts(old_node()));
  CHECK_FALSE(node.trusts(new_node()));
}

TEST_CASE("a session is not resumed that was verified by files of before") {
  const RotatingFiles rotating({old_authority, new_authority});
  Node node(rotating);
  CHECK_FALSE(node.meet(old_node()).resumed());
  CHECK(node.meet(old_node()).resumed());
  rotating.trust({old_authority});
  CHECK_FALSE(node.meet(old_node()).resumed());
  CHECK(node.meet(old_node()).resumed());
  rotating.trust({new_authority});
  CHECK_FALSE(node.trusts(old_node()));
}

TEST_CASE("a client shows its new certificate, and the pair of before while one half is new") {
  ServerContext server(files().node);
  server.demand_certificates();
  RotatingFiles rotating({old_authority});
  rotating.show(files().client);
  Node node(rotating);
  CHECK(node.shown(server) == "client");
  CHECK(node.filter->warning().empty());
  const auto renewed = files().authority.issue("renewed", {});
  place(rotating.options.certificate, {renewed.certificate});
  CHECK(node.shown(server) == "client");
  CHECK(node.filter->warning() ==
        "tls.key: " + rotating.options.key + " is not the key of the certificate in " +
            rotating.options.certificate +
            "; the files that were read before are used until that is fixed");
  place(rotating.options.key, {renewed.key});
  CHECK(node.shown(server) == "renewed");
  CHECK(node.filter->warning().empty());
}

TEST_CASE("a file that cannot serve any more leaves in use what was read before, and is named") {
  RotatingFiles rotating({old_authority});
  rotating.show(files().client);
  Node node(rotating);
  const fs::path ca = rotating.options.ca;
  const auto check_kept = [&](const std::string& sentence) {
    CAPTURE(sentence);
    CHECK(node.trusts(old_node()));
    CHECK(contains(node.filter->warning(), sentence));
    CHECK(contains(node.filter->warning(),
                   "; the files that were read before are used until that is fixed"));
    // It is never trusted less strictly, and whoever is refused is told of the files, too.
    CHECK_FALSE(node.trusts(new_node()));
    CHECK(contains(node.filter->problem(), "an authority that is not trusted here"));
    CHECK(contains(node.filter->problem(), sentence));
    const auto own = node.context->own_certificate({});
    CHECK(contains(own.problem, sentence));
    CHECK(own.period.has_value());
  };
  std::ofstream(ca) << text_in(new_authority).substr(0, 300);  // half written
  check_kept("tls.ca: " + ca.string() + " has a certificate that is damaged");
  std::ofstream(ca).close();
  check_kept("tls.ca: " + ca.string() + " is empty");
  fs::remove(ca);
  check_kept("tls.ca: " + ca.string() + " cannot be read: No such file or directory");
  fs::create_directory(ca);
  check_kept("tls.ca: no file in " + ca.string() + " has a certificate in PEM form");
  fs::remove(ca);
  REQUIRE(::mkfifo(ca.c_str(), 0600) == 0);  // which nobody writes to
  check_kept("tls.ca: " + ca.string() + " is not a file that can be read again");
  rotating.trust({new_authority});
  CHECK(node.trusts(new_node()));
  CHECK(node.filter->warning().empty());
  fs::remove(rotating.options.key);
  CHECK(node.trusts(new_node()));
  CHECK(contains(node.filter->warning(), "tls.key: " + rotating.options.key + " cannot be read"));
}

/// A pipe out of which the text comes once.
class PipeWith {
 public:
  explicit PipeWith(const std::string& text) {
    REQUIRE(::pipe(ends_.data()) == 0);
    REQUIRE(::write(ends_[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(ends_[1]);
  }
  ~PipeWith() { ::close(ends_[0]); }
  PipeWith(const PipeWith&) = delete;
  [[nodiscard]] std::string path() const { return "/dev/fd/" + std::to_string(ends_[0]); }

 private:
  std::array<int, 2> ends_{};
};

TEST_CASE("certificate and key in one file are of one reading, so a new one cannot mix them") {
  ServerContext server(files().node);
  server.demand_certificates();
  RotatingFiles rotating({old_authority});
  rotating.show(files().client);
  const PipeWith both(text_in(rotating.options.certificate) + text_in(rotating.options.key));
  rotating.options.certificate = rotating.options.key = both.path();
  CHECK(Node(rotating).shown(server) == "client");
}

TEST_CASE("what came out of a pipe at first stays in use") {
  ServerContext server(files().node);
  server.demand_certificates();
  RotatingFiles rotating({old_authority});
  rotating.show(files().client);
  std::optional<PipeWith> key(text_in(rotating.options.key));
  rotating.options.key = key->path();
  Node node(rotating);
  key.reset();
  CHECK(node.shown(server) == "client");
  place(rotating.options.certificate, {files().client.certificate});
  CHECK(node.shown(server) == "client");
  CHECK(contains(node.filter->warning(), "cannot be read"));
}

TEST_CASE("the client's own certificate is known with its end") {
  RotatingFiles rotating({old_authority});
  CHECK_FALSE(Node(rotating).context->own_certificate({}).period.has_value());
  rotating.show(files().authority.issue("brief", {.valid_until = std::chrono::hours(5)}));
  Node node(rotating);
  using std::chrono::hours, std::chrono::system_clock;
  const auto soon = std::chrono::floor<std::chrono::seconds>(system_clock::now()) + hours(5);
  const auto ends = node.context->own_certificate({}).period->ends;
  CHECK(ends <= soon);
  CHECK(ends > soon - hours(1));
  rotating.show(files().authority.issue("long", {.valid_until = hours(50)}));
  CHECK(node.context->own_certificate({}).period->ends > soon);
}
