#include "capture/session.h"

#include <utility>

namespace backbind {

namespace {

// A backward is asked for by a thread, so the thread decides: that is the one thing that the engine's entry knows.
thread_local ThreadChoice thread_choice;

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

ThreadChoice exchange_thread_choice(ThreadChoice choice) { return std::exchange(thread_choice, std::move(choice)); }

SessionPtr exchange_process_session(SessionPtr session) {
  const std::lock_guard lock(process_session_mutex());
  return std::exchange(process_session, std::move(session));
}

SessionPtr current_session() {
  if (thread_choice.is_made) return thread_choice.session;
  const std::lock_guard lock(process_session_mutex());
  return process_session;
}

Statistics& process_statistics() {
  static Statistics statistics;
  return statistics;
}

}  // namespace backbind
