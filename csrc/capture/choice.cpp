#include "capture/choice.h"

#include <atomic>
#include <utility>

namespace backbind {

namespace {

// A backward is asked for by a thread, so the thread decides: that is the one thing that the engine's hook knows. What
// was chosen last is kept as long as the same context runs. Threads in which nobody has ever chosen have no contexts.
struct ThreadChoice {
  bool is_made = false;
  SessionPtr session;
  uint64_t context = 0;
  uint64_t change = 0;
};
thread_local ThreadChoice thread_choice;

Contexts contexts;

// How often choices were changed from elsewhere.
std::atomic<uint64_t> changes = 0;

// One for the process, like the engine's hook itself.
SessionPtr process_session;

}  // namespace

std::mutex& process_session_mutex() {
  static std::mutex one;
  return one;
}

void set_contexts(Contexts known) { contexts = known; }

void set_context_session(SessionPtr session) {
  thread_choice = {.is_made = true, .session = std::move(session), .context = contexts.version(), .change = changes};
}

void invalidate_context_sessions() { changes += 1; }

SessionPtr set_process_session(SessionPtr session) {
  const std::lock_guard lock(process_session_mutex());
  return std::exchange(process_session, std::move(session));
}

SessionPtr current_session() {
  if (thread_choice.is_made) {
    if (thread_choice.context != contexts.version() || thread_choice.change != changes) {
      const uint64_t change = changes;
      set_context_session(contexts.session());
      thread_choice.change = change;
    }
    if (thread_choice.session != nullptr) return thread_choice.session;
  }
  const std::lock_guard lock(process_session_mutex());
  return process_session;
}

}  // namespace backbind
