#pragma once
// A move-only callable of no arguments, called at most once (std::move_only_function is C++23).
#include <memory>
#include <type_traits>
#include <utility>

namespace narad {

class UniqueFunction {
 public:
  UniqueFunction() = default;
  template <class F>
    requires(!std::is_same_v<std::decay_t<F>, UniqueFunction>)
  UniqueFunction(F f)  // NOLINT(google-explicit-constructor): a callable converts
      : impl_(std::make_unique<Impl<F>>(std::move(f))) {}

  explicit operator bool() const noexcept { return impl_ != nullptr; }
  // Calls and destroys the callable. REQUIRES: not empty.
  void operator()() {
    auto impl = std::move(impl_);
    impl->call();
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual void call() = 0;
  };
  template <class F>
  struct Impl final : Base {
    explicit Impl(F&& f) : f(std::move(f)) {}
    void call() override { f(); }
    F f;
  };
  std::unique_ptr<Base> impl_;
};

}  // namespace narad
