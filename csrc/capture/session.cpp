#include "capture/session.h"

#include <atomic>
#include <utility>

namespace backbind {

namespace {

// A backward is asked for by a thread, so the thread decides: that is the one thing that the engine's entry knows. What
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

// One for the process, like the engine's entry itself.
SessionPtr process_session;

}  // namespace

std::mutex& Statistics::mutex() {
  static std::mutex one;
  return one;
}

std::mutex& process_session_mutex() {
  static std::mutex one;
  return one;
}

void Statistics::update(const std::function<void(Counts&)>& change) {
  const std::lock_guard lock(mutex());
  change(counts_);
}

Counts Statistics::read() const {
  const std::lock_guard lock(mutex());
  return counts_;
}

void Statistics::clear() {
  const std::lock_guard lock(mutex());
  counts_ = Counts();
}

void set_contexts(Contexts known) { contexts = known; }

void choose_for_context(SessionPtr session) {
  thread_choice = {.is_made = true, .session = std::move(session), .context = contexts.version(), .change = changes};
}

void forget_chosen_sessions() { changes += 1; }

SessionPtr exchange_process_session(SessionPtr session) {
  const std::lock_guard lock(process_session_mutex());
  return std::exchange(process_session, std::move(session));
}

SessionPtr current_session() {
  if (thread_choice.is_made) {
    if (thread_choice.context != contexts.version() || thread_choice.change != changes) {
      const uint64_t change = changes;
      choose_for_context(contexts.chosen());
      thread_choice.change = change;
    }
    if (thread_choice.session != nullptr) return thread_choice.session;
  }
  const std::lock_guard lock(process_session_mutex());
  return process_session;
}

Statistics& process_statistics() {
  static Statistics statistics;
  return statistics;
}

}  // namespace backbind
