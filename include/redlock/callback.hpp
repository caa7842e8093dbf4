// SPDX-License-Identifier: MIT
// The function that an operation calls when it has its result. Like std::move_only_function of
// C++23, for one signature.
#pragma once

#include <redlock/cpp20.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <redlock/error.hpp>

namespace redlock {

/// Holds any function object that can be called with a Result<T>. It is moved and never copied, so
/// it may own what cannot be copied (a std::promise, a std::unique_ptr). Captures of up to three
/// pointers are kept without an allocation.
template <typename T>
class Callback {
 public:
  template <typename Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, Callback> &&
           std::invocable<std::decay_t<Function>&, Result<T>>)
      Callback(Function&& function) {  // NOLINT(google-explicit-constructor): a lambda is one
    using Held = std::decay_t<Function>;
    if constexpr (fits<Held>) {
      ::new (static_cast<void*>(place_)) Held(std::forward<Function>(function));
      kind_ = &kind_of<Here<Held>>;
    } else {
      ::new (static_cast<void*>(place_)) Held*(new Held(std::forward<Function>(function)));
      kind_ = &kind_of<Elsewhere<Held>>;
    }
  }

  /// One that was moved from can only be assigned to or destroyed.
  Callback(Callback&& other) noexcept { take(other); }
  Callback& operator=(Callback&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  ~Callback() { drop(); }

  /// An exception that leaves the function ends the program.
  void operator()(Result<T> result) noexcept { kind_->call(place_, std::move(result)); }

 private:
  static constexpr std::size_t room = 3 * sizeof(void*);
  template <typename Held>
  static constexpr bool fits =
      sizeof(Held) <= room &&
      alignof(Held) <= alignof(void*) && std::is_nothrow_move_constructible_v<Held>;

  /// The function itself is in place_.
  template <typename Held>
  struct Here {
    static Held& at(void* place) { return *std::launder(static_cast<Held*>(place)); }
    static void move(void* from, void* to) noexcept {
      ::new (to) Held(std::move(at(from)));
      at(from).~Held();
    }
    static void destroy(void* place) noexcept { at(place).~Held(); }
  };
  /// place_ has a pointer to it.
  template <typename Held>
  struct Elsewhere {
    static Held*& pointer(void* place) { return *std::launder(static_cast<Held**>(place)); }
    static Held& at(void* place) { return *pointer(place); }
    static void move(void* from, void* to) noexcept { ::new (to) Held*(pointer(from)); }
    static void destroy(void* place) noexcept { delete pointer(place); }
  };

  struct Kind {
    void (*call)(void* place, Result<T>&& result) noexcept;
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void* place) noexcept;
  };
  template <typename Storage>
  static constexpr Kind kind_of{
      [](void* place, Result<T>&& result) noexcept { Storage::at(place)(std::move(result)); },
      &Storage::move, &Storage::destroy};

  void take(Callback& other) noexcept {
    kind_ = std::exchange(other.kind_, nullptr);
    if (kind_ != nullptr) kind_->move(other.place_, place_);
  }
  void drop() noexcept {
    if (kind_ != nullptr) std::exchange(kind_, nullptr)->destroy(place_);
  }

  const Kind* kind_ = nullptr;  // null: moved from
  alignas(void*) std::byte place_[room];
};

}  // namespace redlock
