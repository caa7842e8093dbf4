// SPDX-License-Identifier: MIT
#include "engine/engine.hpp"

#include "engine/engine_impl.hpp"

namespace redlock::engine {

Engine::Engine(const Config& config, RandomSource& random)
    : impl_(std::make_unique<Impl>(config, random)) {}
Engine::~Engine() = default;

void Engine::acquire(Instant now, RequestId request, AcquireRequest what) {
  impl_->acquire(now, request, std::move(what));
}
void Engine::attach(Instant now, RequestId request, AttachRequest what) {
  impl_->attach(now, request, std::move(what));
}
void Engine::cancel(Instant now, RequestId request, Errc why) {
  impl_->cancel(now, request, why);
}
void Engine::extend(Instant now, RequestId request, GrantId grant,
                    std::chrono::milliseconds lease) {
  impl_->extend(now, request, grant, lease);
}
void Engine::enter(Instant now, RequestId request, const EnterRequest& what) {
  impl_->enter(now, request, what);
}
void Engine::leave(Instant now, GrantId grant) {
  impl_->leave(now, grant);
}
void Engine::release(Instant now, RequestId request, GrantId grant) {
  impl_->release(now, request, grant);
}
void Engine::release(Instant now, RequestId request, Name name, OwnerId owner,
                     std::chrono::milliseconds lease) {
  impl_->release(now, request, std::move(name), owner, lease);
}
void Engine::force_release(Instant now, RequestId request, Name name, OwnerId owner,
                           std::chrono::milliseconds lease) {
  impl_->force_release(now, request, std::move(name), owner, lease);
}
void Engine::give_up(Instant now, GrantId grant, LossReason reason) {
  impl_->give_up(now, grant, reason);
}
void Engine::detach(Instant now, GrantId grant) {
  impl_->detach(now, grant);
}

void Engine::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  impl_->on_reply(now, node, tag, reply);
}
void Engine::on_node_facts(Instant now, NodeIndex node, const NodeFacts& facts) {
  impl_->on_node_facts(now, node, facts);
}
void Engine::on_marker(Instant now, NodeIndex node, Marker marker, std::string set) {
  impl_->on_marker(now, node, marker, std::move(set));
}
std::optional<Unavailable> Engine::objection(Instant now, NodeIndex node) const {
  return impl_->objection(now, node);
}
void Engine::on_node_up(Instant now, NodeIndex node) {
  impl_->on_node_up(now, node);
}
void Engine::on_own_clock(Instant now, std::int64_t unix_us) {
  impl_->on_own_clock(now, unix_us);
}
void Engine::on_node_clock(Instant now, NodeIndex node, std::int64_t unix_us,
                           Duration uncertainty) {
  impl_->on_node_clock(now, node, unix_us, uncertainty);
}

Instant Engine::deadline() const {
  return impl_->deadline();
}
void Engine::on_deadline(Instant now) {
  impl_->on_deadline(now);
}

void Engine::take_outputs(std::vector<Output>& out) {
  impl_->take_outputs(out);
}
std::size_t Engine::releases_under_way() const {
  return impl_->releases_under_way();
}
std::uint32_t Engine::nodes_releasing() const {
  return impl_->nodes_releasing();
}

}  // namespace redlock::engine
