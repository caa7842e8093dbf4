// SPDX-License-Identifier: MIT
// One connected socket, TCP or Unix.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <uv.h>

#include "net/loop.hpp"

namespace redlock::net {

/// Any call may close the stream.
class StreamListener {
 public:
  virtual void on_connected() = 0;
  virtual void on_bytes(std::string_view bytes) = 0;
  /// The system has the bytes that write() took; the stream takes bytes again.
  virtual void on_writable() = 0;
  /// The stream cannot go on; `uv_status` says why (UV_EOF: the other side closed). It is to be
  /// closed.
  virtual void on_stream_failed(int uv_status) = 0;

 protected:
  ~StreamListener() = default;
};

class Stream {
 public:
  // Closes at once and (unless let_arrive() was called) with RST, so that nothing more is delivered
  // to a peer that does not answer; libuv frees the memory a turn later.
  struct Close {
    void operator()(Stream* stream) const;
  };
  using Owned = std::unique_ptr<Stream, Close>;

  /// Begins to connect. `uv_status` is not 0, and nothing is returned, if that fails at once.
  static Owned connect(Loop& loop, const sockaddr& address, StreamListener& listener,
                       int& uv_status);
  static Owned connect(Loop& loop, const std::string& unix_path, StreamListener& listener);

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void set_listener(StreamListener& listener) { listener_ = &listener; }

  /// When this stream is closed, bytes that the system has taken may still arrive.
  void let_arrive() { reset_when_closed_ = false; }

  /// Takes all the bytes, in one system call; or none while some of the earlier bytes wait for the
  /// socket. 0 or libuv's error, after which the stream is to be closed.
  [[nodiscard]] int write(std::string& bytes);
  /// Bytes that write() took and the socket did not.
  [[nodiscard]] std::size_t in_flight() const { return in_flight_.size(); }

 private:
  Stream(Loop& loop, StreamListener& listener) : loop_(loop), listener_(&listener) { loop.enter(); }
  ~Stream() = default;

  [[nodiscard]] uv_stream_t* uv() { return reinterpret_cast<uv_stream_t*>(&handle_); }
  void connected(int uv_status);
  void read(ssize_t count);
  [[nodiscard]] uv_buf_t room();
  void written(int uv_status);

  Loop& loop_;
  union {
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  } handle_{};
  uv_connect_t connect_{};
  uv_write_t write_{};
  StreamListener* listener_;  // null once closed
  bool reset_when_closed_ = true;
  std::string in_flight_;  // the bytes that libuv is writing
  std::size_t read_ = 0;   // bytes read since the turn of another socket
};

}  // namespace redlock::net
