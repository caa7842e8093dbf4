// SPDX-License-Identifier: MIT
#include "admin/node_query.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <semaphore>
#include <set>
#include <utility>

#include "client/client_impl.hpp"
#include "client/sentence.hpp"
#include "wire/error_reply.hpp"

namespace redlock::admin {

/// A core of the query's own. Most of its reports about nodes are ignored: each reply shows the
/// same.
struct NodeQuery::Own final : wire::DriverHost {
  std::set<engine::NodeIndex> waking;  // of the loop thread
  std::unique_ptr<net::Core> core;

  void on_output(engine::ClientOutput&& /*output*/) override {}
  void on_node_up(engine::NodeIndex /*node*/, std::string_view /*warning*/) override {}
  void on_node_down(engine::NodeIndex /*node*/, const engine::Unavailable& /*why*/) override {}
  void on_wakes(engine::NodeIndex node, bool wakes) override {
    if (wakes) {
      waking.insert(node);
    } else {
      waking.erase(node);
    }
  }
};

/// One round of commands. It lives on the calling thread's stack, which is safe because that thread
/// waits until no question of it is left. When the client's core ends, the outstanding ones are
/// errors; if it fails, they are destroyed and stay the errors that they are at first.
class NodeQuery::Round final : public net::Task {
 public:
  Round(const NodeQuery& query, std::vector<std::vector<QueryCommand>> commands,
        std::chrono::milliseconds timeout)
      : query_(query),
        commands_(std::move(commands)),
        timeout_(timeout),
        results_(commands_.size()) {
    const engine::Unavailable unanswered{Cause::connection_lost, engine::Delivery::unknown,
                                         "the program has no memory left for its answer"};
    for (std::size_t node = 0; node < commands_.size(); ++node) {
      results_[node].answers.resize(commands_[node].size(), tl::unexpected(unanswered));
    }
  }

  void run() override {
    const auto now = BootClock::now();
    // Shared by all outstanding questions, and by this call while they are being sent.
    const std::shared_ptr<void> outstanding(nullptr, [this](std::nullptr_t) { done_.release(); });
    for (std::size_t node = 0; node < commands_.size(); ++node) {
      results_[node].asked = now;
      for (std::size_t i = 0; i < commands_[node].size(); ++i) {
        query_.core().ask(query_.numbers_[node], commands_[node][i], timeout_,
                          [this, node, i, outstanding](engine::Instant, wire::Answer answer) {
                            take(node, i, std::move(answer));
                          });
      }
    }
  }

  std::vector<NodeAnswers> wait() {
    done_.acquire();
    return std::move(results_);
  }
  /// By what the nodes had shown when the last one answered.
  [[nodiscard]] std::uint32_t quorum() const { return quorum_; }

 private:
  void take(std::size_t place, std::size_t i, wire::Answer&& answer) {
    const engine::NodeIndex node = query_.numbers_[place];
    NodeAnswers& results = results_[place];
    results.answers[i] = std::move(answer);
    results.answered = BootClock::now();
    // What one node shows may decide which set another belongs to.
    for (std::size_t each = 0; each < results_.size(); ++each) {
      results_[each].objection =
          query_.core().engine().objection(results.answered, query_.numbers_[each]);
    }
    quorum_ = query_.core().engine().quorum();
    results.secrets = query_.core().secrets(node);
    results.trusted_by = query_.core().trusted_by(node);
    results.wakes = query_.wakes(node);
  }

  const NodeQuery& query_;
  std::vector<std::vector<QueryCommand>> commands_;
  std::chrono::milliseconds timeout_;
  std::vector<NodeAnswers> results_;
  std::uint32_t quorum_ = 0;
  std::binary_semaphore done_{0};
};

namespace {

std::optional<Error> refuse_to_wait(Client::Impl& client) {
  if (!client.must_not_wait()) return std::nullopt;
  return Error{Errc::would_deadlock,
               client.on_given_loop()
                   ? "a client on a loop of the program's own refuses questions that block: make "
                     "a Client without a loop for Admin, on another thread"
                   : "a question to the nodes from the client's own thread would never be "
                     "answered; ask from another thread",
               {}};
}

}  // namespace

NodeQuery NodeQuery::of(Client::Impl& client) {
  return NodeQuery(client);
}

Result<NodeQuery> NodeQuery::inspecting(Client::Impl& client, Login login) {
  if (client.forked()) return tl::make_unexpected(client.closed_error());
  if (auto refusal = refuse_to_wait(client)) return tl::make_unexpected(std::move(*refusal));
  NodeQuery query(client);
  std::iota(query.numbers_.begin(), query.numbers_.end(), 0);  // of a core that has no others
  net::CoreConfig config;
  config.nodes = query.nodes_;
  config.tls = client.tls();
  config.engine.node_timeout = client.options().node_timeout;
  config.resolve_timeout = client.options().resolve_timeout;
  config.connect_timeout = client.options().connect_timeout;
  config.client_name = client.options().client_name;
  if (login == Login::as_configured) config.password = client.options().password;
  for (auto& node : config.nodes) {
    if (login == Login::none) node.user = node.password = "";
  }
  config.unfit = wire::UnfitNodes::report;
  query.own_ = std::make_shared<Own>();
  auto core = net::Core::start(std::move(config), *query.own_);
  if (!core) {
    return tl::make_unexpected(
        Error{Errc::closed, "the nodes cannot be asked: " + core.error(), {}});
  }
  query.own_->core = std::move(*core);
  return query;
}

NodeQuery::NodeQuery(Client::Impl& client) : client_(&client) {
  engine::NodeIndex number = 0;
  for (wire::NodeAddress& node : client.nodes()) {
    if (!node.label.empty()) {
      nodes_.push_back(std::move(node));
      numbers_.push_back(number);
    }
    ++number;
  }
  quorum_ = engine::quorum_of(static_cast<std::uint32_t>(nodes_.size()));
}

bool NodeQuery::is_outdated() const {
  auto now = client_->nodes();
  std::erase_if(now, [](const wire::NodeAddress& node) { return node.label.empty(); });
  return !std::ranges::equal(now, nodes_, {}, &wire::NodeAddress::label, &wire::NodeAddress::label);
}

const std::vector<wire::NodeAddress>& NodeQuery::nodes() const {
  return nodes_;
}

const ClientOptions& NodeQuery::options() const {
  return client_->options();
}

const std::shared_ptr<tls::TlsContext>& NodeQuery::tls() const {
  return client_->tls();
}

std::chrono::milliseconds NodeQuery::patience() const {
  const auto& what = options();
  return what.resolve_timeout + what.connect_timeout + what.node_timeout;
}

void NodeQuery::pause(std::chrono::milliseconds time) {
  std::binary_semaphore never(0);
  const auto end = BootClock::now() + time;
  for (auto now = BootClock::now(); now < end; now = BootClock::now()) {
    static_cast<void>(never.try_acquire_for(end - now));
  }
}

net::Core& NodeQuery::core() const {
  return own_ ? *own_->core : client_->core();
}

bool NodeQuery::wakes(engine::NodeIndex node) const {
  return own_ && own_->waking.contains(node);
}

bool NodeQuery::post(net::Task& task) const {
  return own_ ? own_->core->post(task) : client_->post(task);
}

Result<std::vector<NodeAnswers>> NodeQuery::ask(std::vector<std::vector<QueryCommand>> commands,
                                                std::chrono::milliseconds timeout) {
  if (auto refusal = refuse_to_wait(*client_)) return tl::make_unexpected(std::move(*refusal));
  Round round(*this, std::move(commands), timeout);
  if (!post(round)) return tl::make_unexpected(client_->closed_error());
  auto answers = round.wait();
  quorum_ = std::max(quorum_, round.quorum());
  if (client_->failed()) return tl::make_unexpected(client_->closed_error());
  for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i].later.add_all(answers[i].secrets);
  return answers;
}

Result<std::vector<NodeAnswers>> NodeQuery::ask_all(const std::vector<QueryCommand>& commands,
                                                    std::chrono::milliseconds timeout) {
  return ask(std::vector(nodes().size(), commands), timeout);
}

NodeTrouble trouble_of(const wire::Answer& answer, const wire::NodeAddress& node,
                       std::string_view script) {
  if (!answer) return {answer.error().cause, client::cleaned(answer.error().detail, node)};
  if (const auto* error = std::get_if<wire::Value::ErrorText>(&answer->data)) {
    auto why = wire::to_unavailable(error->text, node.secrets(), script);
    return {why.cause, std::move(why.detail)};
  }
  return {};
}

std::optional<std::string> text_of(const wire::Answer& answer) {
  if (!answer) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&answer->data)) return *text;
  if (const auto* number = std::get_if<std::int64_t>(&answer->data)) return std::to_string(*number);
  return std::nullopt;
}

std::optional<std::int64_t> number_of(const wire::Answer& answer) {
  const auto text = text_of(answer);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* end = text->data() + text->size();
  const auto [rest, problem] = std::from_chars(text->data(), end, number);
  if (problem != std::errc() || rest != end) return std::nullopt;
  return number;
}

std::vector<std::string> texts_of(const wire::Answer& answer) {
  std::vector<std::string> texts;
  if (!answer) return texts;
  const auto* items = std::get_if<std::vector<wire::Value>>(&answer->data);
  if (items == nullptr) return texts;
  for (const auto& item : *items) texts.push_back(text_of(item).value_or(""));
  return texts;
}

std::map<std::string, std::string> fields_of(const wire::Answer& answer) {
  const auto texts = texts_of(answer);
  std::map<std::string, std::string> fields;
  for (std::size_t i = 0; i + 1 < texts.size(); i += 2) fields[texts[i]] = texts[i + 1];
  return fields;
}

}  // namespace redlock::admin
