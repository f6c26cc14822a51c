#include "capture/listener.h"

#include <utility>

namespace backbind {

namespace {

Listener current_listener;

}  // namespace

std::mutex& listener_mutex() {
  static std::mutex one;
  return one;
}

void set_listener(Listener listener) {
  const std::lock_guard lock(listener_mutex());
  current_listener = std::move(listener);
}

void tell_listener(const char* kind, const std::string& text) {
  Listener call;
  {
    const std::lock_guard lock(listener_mutex());
    call = current_listener;
  }
  if (call) call(kind, text);
}

}  // namespace backbind
