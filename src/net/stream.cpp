// SPDX-License-Identifier: MIT
// libuv writes with write(), which raises SIGPIPE on a connection that was reset. The loop thread
// blocks all signals, so the signal would stay pending there; but callers drive the loop, too. So
// libuv gets only the bytes that a socket does not take at once, and writes them later on the loop
// thread.
#include "net/stream.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <utility>

#include "net/signals.hpp"

namespace redlock::net {
namespace {

constexpr unsigned keepalive_seconds = 15;
/// Some ten thousand replies. libuv alone would read eight times as much from a flooding node
/// before it turns to the others.
constexpr std::size_t most_in_a_turn = std::size_t{256} << 10;

/// The bytes that the socket took; or libuv's error, which is 0 if it takes none now.
ssize_t send_at_once(int socket, const std::string& bytes) {
  for (;;) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return 0;
    if (errno != EINTR) return uv_translate_sys_error(errno);
  }
}

Stream& self(void* data) {
  return *static_cast<Stream*>(data);
}

}  // namespace

Stream::Owned Stream::connect(Loop& loop, const sockaddr& address, StreamListener& listener,
                              int& uv_status) {
  Owned stream(new Stream(loop, listener));
  uv_tcp_init(&loop.uv, &stream->handle_.tcp);
  stream->uv()->data = stream.get();
  uv_status = uv_tcp_connect(&stream->connect_, &stream->handle_.tcp, &address,
                             [](uv_connect_t* request, int status) {
                               Stream& of = self(request->handle->data);
                               of.loop_.run([&] { of.connected(status); });
                             });
  if (uv_status != 0) stream.reset();
  return stream;
}

Stream::Owned Stream::connect(Loop& loop, const std::string& unix_path, StreamListener& listener) {
  Owned stream(new Stream(loop, listener));
  uv_pipe_init(&loop.uv, &stream->handle_.pipe, 0);
  stream->uv()->data = stream.get();
  uv_pipe_connect(&stream->connect_, &stream->handle_.pipe, unix_path.c_str(),
                  [](uv_connect_t* request, int status) {
                    Stream& of = self(request->handle->data);
                    of.loop_.run([&] { of.connected(status); });
                  });
  return stream;
}

void Stream::Close::operator()(Stream* stream) const {
  stream->listener_ = nullptr;
  auto* const handle = reinterpret_cast<uv_handle_t*>(stream->uv());
  const uv_close_cb closed = [](uv_handle_t* uv) {
    auto* const gone = static_cast<Stream*>(uv->data);
    Loop& loop = gone->loop_;
    delete gone;
    loop.leave();
  };
  // A reset fails where there is no socket yet; it is then not closed.
  if (handle->type != UV_TCP || !stream->reset_when_closed_ ||
      uv_tcp_close_reset(&stream->handle_.tcp, closed) != 0) {
    uv_close(handle, closed);
  }
}

void Stream::connected(int uv_status) {
  if (listener_ == nullptr) return;
  if (uv_status == 0 && uv()->type == UV_TCP) {
    uv_tcp_nodelay(&handle_.tcp, 1);
    uv_tcp_keepalive(&handle_.tcp, 1, keepalive_seconds);
  }
  if (uv_status == 0) {
    uv_status = uv_read_start(
        uv(),
        [](uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
          *buffer = self(handle->data).room();
        },
        [](uv_stream_t* stream, ssize_t count, const uv_buf_t*) {
          Stream& of = self(stream->data);
          of.loop_.run([&] { of.read(count); });
        });
  }
  if (uv_status == 0) {
    listener_->on_connected();
  } else {
    listener_->on_stream_failed(uv_status);
  }
}

/// Without room libuv turns to the next socket, and comes back to this one in its next turn.
uv_buf_t Stream::room() {
  auto& input = loop_.input;
  return uv_buf_init(input.data(),
                     read_ < most_in_a_turn ? static_cast<unsigned>(input.size()) : 0);
}

void Stream::read(ssize_t count) {
  if (listener_ == nullptr || count == 0) return;
  if (count == UV_ENOBUFS && read_ >= most_in_a_turn) {
    read_ = 0;
    return;
  }
  if (count < 0) {
    listener_->on_stream_failed(static_cast<int>(count));
    return;
  }
  read_ += static_cast<std::size_t>(count);
  listener_->on_bytes({loop_.input.data(), static_cast<std::size_t>(count)});
}

int Stream::write(std::string& bytes) {
  if (!in_flight_.empty() || bytes.empty()) return 0;  // on_writable() follows
  uv_os_fd_t socket{};
  if (const int status = uv_fileno(reinterpret_cast<uv_handle_t*>(uv()), &socket); status != 0) {
    return status;
  }
  const ssize_t sent = send_at_once(socket, bytes);
  if (sent < 0) return static_cast<int>(sent);
  if (sent == static_cast<ssize_t>(bytes.size())) {
    bytes.clear();
    return 0;
  }
  bytes.erase(0, static_cast<std::size_t>(sent));
  in_flight_.swap(bytes);
  const NoBrokenPipe quiet;
  uv_buf_t buffer = uv_buf_init(in_flight_.data(), static_cast<unsigned>(in_flight_.size()));
  return uv_write(&write_, uv(), &buffer, 1, [](uv_write_t* request, int status) {
    Stream& of = self(request->handle->data);
    of.loop_.run([&] { of.written(status); });
  });
}

void Stream::written(int uv_status) {
  if (listener_ == nullptr) return;
  in_flight_.clear();
  if (uv_status == 0) {
    listener_->on_writable();
  } else {
    listener_->on_stream_failed(uv_status);
  }
}

}  // namespace redlock::net
