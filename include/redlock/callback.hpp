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

/// Holds any function object that can be called with a Result<T>. A callback is moved and never
/// copied, so it may own objects that cannot be copied (a std::promise, a std::unique_ptr).
/// Captures of up to three pointers are kept without an allocation.
template <typename T>
class Callback {
 public:
  /// Any function object that takes a Result<T>, a lambda for example.
  template <typename Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, Callback> &&
           std::invocable<std::decay_t<Function>&, Result<T>>)
      Callback(Function&& function) {  // NOLINT(google-explicit-constructor): a lambda is one
    using Target = std::decay_t<Function>;
    if constexpr (fits<Target>) {
      ::new (static_cast<void*>(place_)) Target(std::forward<Function>(function));
      kind_ = &kind_of<Here<Target>>;
    } else {
      ::new (static_cast<void*>(place_)) Target*(new Target(std::forward<Function>(function)));
      kind_ = &kind_of<Elsewhere<Target>>;
    }
  }

  /// A callback that was moved from can only be assigned to or destroyed.
  Callback(Callback&& other) noexcept { take(other); }
  /// Destroys its own function, and takes over that of the other callback.
  Callback& operator=(Callback&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  ~Callback() { drop(); }

  /// Operation::start says what becomes of an exception that leaves the function.
  void operator()(Result<T> result) { kind_->call(place_, std::move(result)); }

 private:
  static constexpr std::size_t room = 3 * sizeof(void*);
  template <typename Target>
  static constexpr bool fits =
      sizeof(Target) <= room &&
      alignof(Target) <= alignof(void*) && std::is_nothrow_move_constructible_v<Target>;

  /// The function itself is in place_.
  template <typename Target>
  struct Here {
    static Target& at(void* place) { return *std::launder(static_cast<Target*>(place)); }
    static void move(void* from, void* to) noexcept {
      ::new (to) Target(std::move(at(from)));
      at(from).~Target();
    }
    static void destroy(void* place) noexcept { at(place).~Target(); }
  };
  /// place_ has a pointer to the function.
  template <typename Target>
  struct Elsewhere {
    static Target*& pointer(void* place) { return *std::launder(static_cast<Target**>(place)); }
    static Target& at(void* place) { return *pointer(place); }
    static void move(void* from, void* to) noexcept { ::new (to) Target*(pointer(from)); }
    static void destroy(void* place) noexcept { delete pointer(place); }
  };

  struct Kind {
    void (*call)(void* place, Result<T>&& result);
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void* place) noexcept;
  };
  template <typename Storage>
  static constexpr Kind kind_of{
      [](void* place, Result<T>&& result) { Storage::at(place)(std::move(result)); },
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
