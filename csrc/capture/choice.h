// Which session a backward belongs to: that of the context which asks for it, or else that of the process.
#pragma once

#include <cstdint>
#include <mutex>

#include "capture/session.h"

namespace backbind {

// Several contexts may take turns in a thread, such as the tasks of an event loop, and each has made its own choice.
struct Contexts {
  // Another number whenever another context begins to run in this thread. Called without the GIL.
  uint64_t (*version)() = [] { return uint64_t{0}; };
  // The session that the running context has chosen, or null.
  SessionPtr (*session)() = [] { return SessionPtr(); };
};

// Who knows them; until then a thread has one context.
void set_contexts(Contexts contexts);

// Sets what the context that runs in this thread has chosen to run its backwards in; null to do as the process does.
void set_context_session(SessionPtr session);

// To be called when the choice of a context was changed from elsewhere: every thread asks for it again.
void invalidate_context_sessions();

// Sets what threads without a choice of their own do, and returns what it was.
SessionPtr set_process_session(SessionPtr session);

// The session in which a backward of this thread runs, or null.
SessionPtr current_session();

// Guards the process's session; held over a fork.
std::mutex& process_session_mutex();

}  // namespace backbind
