// Tells whoever wants to know when a backward does something else than to be replayed.
#pragma once

#include <functional>
#include <mutex>
#include <string>

namespace backbind {

// Called with the kind ("captured", "recaptured", "left to the engine") and a text.
using Listener = std::function<void(const char* kind, const std::string& text)>;

// One for the process: it is what feeds Python's loggers.
void set_listener(Listener listener);

void tell_listener(const char* kind, const std::string& text);

// Guards the listener; held over a fork.
std::mutex& listener_mutex();

}  // namespace backbind
