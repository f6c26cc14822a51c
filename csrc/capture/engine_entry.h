// Where the autograd engine hands a backward over to us, before it runs anything.
#pragma once

#include <functional>
#include <string>

#include "capture/session.h"

namespace backbind {

// Takes the engine's entry, if it is not taken yet. Backwards of threads that capture nothing go on to the engine.
//
// Raises RuntimeError where torch refuses, which it may do while another thread is inside a backward.
void take_engine_entry();

// Forgets all plans.
void forget_plans();

size_t plans_held();

// What these take of memory.
size_t plan_bytes_held();

// Called with the kind ("captured", "recaptured", "left to the engine") and a text whenever a backward does something
// else than to be replayed. One for the process: it is what feeds Python's loggers.
using Listener = std::function<void(const char* kind, const std::string& text)>;
void set_listener(Listener listener);

}  // namespace backbind
