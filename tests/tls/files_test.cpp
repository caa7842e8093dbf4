// SPDX-License-Identifier: MIT
// The files that a client is given: each that cannot serve ends as a sentence that names it.
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/text.hpp"
#include "tls/peers.hpp"

using namespace redlock::tls;
using redlock::TlsOptions;
using redlock::testing::contains;
using redlock::testing::text_in;

namespace {

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

}  // namespace

TEST_CASE("authorities come from a file or from all files of a directory") {
  const auto folder = files().directory.path() / "authorities";
  std::filesystem::create_directory(folder);
  CHECK(problem({.ca = folder.string()}) ==
        "tls.ca: no file in " + folder.string() + " has a certificate in PEM form");
  std::filesystem::copy_file(files().authority.certificate(), folder / "one");
  std::filesystem::copy_file(files().stranger.certificate(), folder / "two");
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
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(files().authority.certificate(), folder / "good");
  std::filesystem::copy_file(cut, folder / "cut");
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
