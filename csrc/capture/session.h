// What a caller of capture() holds: which backend runs the backwards of a thread, and what came of them.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeinfo>

#include "capture/bounded_counts.h"
#include "capture/mismatch.h"
#include "capture/plan.h"
#include "capture/request.h"
#include "capture/slow_path.h"

namespace backbind {

// Runs a plan on a live graph and returns the gradients that are handed out. Counts steps that took the slow path.
using Backend = variable_list (*)(const Plan& plan, const LiveNodes& nodes, const Request& request,
                                  SlowPathSteps& slow_path);

struct SlowPathKind {
  SlowPathReason reason;
  const std::type_info* node_type;
  // The operator that is part of the reason, or null; the name lives as long as the process.
  const std::string* operator_name;

  auto operator<=>(const SlowPathKind&) const = default;
};

// Numbers since the start of a session, or of the process.
struct Counts {
  uint64_t captures = 0;       // plans made
  uint64_t replays = 0;        // backwards that a plan of an earlier one ran
  uint64_t steps = 0;          // nodes run by plans
  uint64_t fallbacks = 0;      // backwards left to the engine
  double look_up_seconds = 0;  // looking for plans that fit
  double capture_seconds = 0;  // making plans
  // Why a backward was captured although a plan nearly fitted it.
  BoundedCounts<Mismatch, 64> recaptures;
  // Why backwards were left to the engine, in words; there are few such reasons.
  std::map<std::string, uint64_t> fallback_reasons;
  // Steps of captured plans that run the live node because nothing more is known of it, by the node's name.
  BoundedCounts<std::string, 64> opaque_steps;
  BoundedCounts<SlowPathKind, 256> slow_path;
};

// Counts that several threads write. One mutex guards those of all sessions, so that it can be held over a fork;
// nothing that is done under it waits for anything else, the GIL least of all.
class Statistics {
 public:
  void update(const std::function<void(Counts&)>& change);
  Counts read() const;
  void clear();

  static std::mutex& mutex();

 private:
  Counts counts_;
};

struct Session {
  explicit Session(Backend runner) : backend(runner) {}

  const Backend backend;
  Statistics statistics;
};

using SessionPtr = std::shared_ptr<Session>;

// Several contexts may take turns in a thread, such as the tasks of an event loop, and each has made its own choice.
struct Contexts {
  // Another number whenever another context begins to run in this thread. Called without the GIL.
  uint64_t (*version)() = [] { return uint64_t{0}; };
  // The session that the running context has chosen, or null.
  SessionPtr (*chosen)() = [] { return SessionPtr(); };
};

// Who knows them; until then a thread has one context.
void set_contexts(Contexts contexts);

// What the context that runs in this thread has chosen to run its backwards in; null to do as the process does.
void choose_for_context(SessionPtr session);

// To be called when the choice of a context was changed from elsewhere: every thread asks for it again.
void forget_chosen_sessions();

// Sets what threads without a choice of their own do, and returns what it was.
SessionPtr exchange_process_session(SessionPtr session);

// The session in which a backward of this thread runs, or null.
SessionPtr current_session();

// Guards the process's session; held over a fork.
std::mutex& process_session_mutex();

// The counts of the process.
Statistics& process_statistics();

}  // namespace backbind
