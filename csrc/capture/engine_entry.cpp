#include "capture/engine_entry.h"

#include <pthread.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "capture/devices.h"
#include "capture/store.h"
#include "torch_private.h"

namespace backbind {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::Node;

namespace {

constexpr size_t kPlansHeld = 128;

// A plan takes about 70 bytes for each node. This holds 128 plans of 7,000 nodes, or one of nearly a million, and is
// little beside what a process that trains such graphs holds anyway.
constexpr size_t kPlanBytesHeld = size_t{64} << 20;

// The engine moves a backward inside a backward inside a backward ... to another thread at 60, before the stack runs
// out; we leave it to the engine before that.
constexpr int kDeepest = 40;

PlanStore& plans() {
  static PlanStore store(kPlansHeld, kPlanBytesHeld);
  return store;
}

std::mutex listener_mutex;
Listener listener;

void tell(const char* kind, const std::string& text) {
  Listener call;
  {
    const std::lock_guard lock(listener_mutex);
    call = listener;
  }
  if (call) call(kind, text);
}

void count(Session& session, const std::function<void(Counts&)>& change) {
  session.statistics.update(change);
  process_statistics().update(change);
}

// How many backwards this thread runs, one inside the other.
thread_local int depth = 0;

class Deeper {
 public:
  Deeper() { ++depth; }
  ~Deeper() { --depth; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
};

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Why a backward is the engine's business, or null.
const char* reason_to_fall_back(const Request& request) {
  if (touches_accelerator(request)) return "tensors on an accelerator";
  if (torch::autograd::AnomalyMode::is_enabled()) return "anomaly mode";
  if (depth + request.task.reentrant_depth_ >= kDeepest) return "a backward inside too many others";
  return nullptr;
}

variable_list leave_to_engine(Session& session, const Request& request, const char* reason) {
  bool is_first = false;
  process_statistics().update([&](Counts& counts) { is_first = !counts.fallback_reasons.contains(reason); });
  count(session, [&](Counts& counts) {
    counts.fallbacks += 1;
    counts.fallback_reasons[reason] += 1;
  });
  if (is_first) tell("left to the engine", reason);
  return torch_private::run_in_engine(request.root, request.task);
}

// Makes a plan for a backward that none was found for, and keeps it.
PlanPtr capture(Session& session, const Request& request, LookUp& found) {
  const Stopwatch stopwatch;
  Walk walked = walk(request.roots(), request.inputs, request.wanted, request.everything());
  found.nodes = std::move(walked.nodes);
  const auto plan = std::make_shared<const Plan>(std::move(walked.plan));
  if (!plans().keep(request, found, plan)) found.difference = {.difference = Difference::kTooLarge};
  const double seconds = stopwatch.seconds();
  // A Python function needs the GIL to tell its name, so names are asked for before any lock is held.
  std::map<std::string, uint64_t> opaque;
  for (size_t i = 0; i < found.nodes.size(); ++i) {
    const Step& step = plan->steps[i];
    if (step.runs && !step.accumulates && step.binding == nullptr) opaque[found.nodes[i]->name()] += 1;
  }
  count(session, [&](Counts& counts) {
    counts.captures += 1;
    counts.capture_seconds += seconds;
    if (found.difference) counts.recaptures.add(*found.difference);
    for (const auto& [name, times] : opaque) counts.opaque_steps.add(name, times);
  });
  const std::string steps = std::to_string(found.nodes.size()) + " steps";
  if (found.difference) {
    tell("recaptured", steps + "; " + found.difference->describe());
  } else {
    tell("captured", steps);
  }
  return plan;
}

variable_list run(Session& session, const Request& request) {
  if (const char* reason = reason_to_fall_back(request)) return leave_to_engine(session, request, reason);
  const Stopwatch stopwatch;
  LookUp found = plans().find(request);
  const double look_up_seconds = stopwatch.seconds();
  const bool is_replay = found.plan != nullptr;
  if (!is_replay) found.plan = capture(session, request, found);
  count(session, [&](Counts& counts) {
    counts.replays += is_replay ? 1 : 0;
    counts.steps += found.plan->steps.size();
    counts.look_up_seconds += look_up_seconds;
  });
  const Deeper deeper;
  SlowPathSteps slow_path(found.plan->node_types);
  variable_list gradients = session.backend(*found.plan, found.nodes, request, slow_path);
  if (!slow_path.empty()) {
    count(session, [&](Counts& counts) {
      slow_path.for_each([&](const std::type_info& node_type, SlowPathReason reason, const std::string* operator_name,
                             uint64_t times) { counts.slow_path.add({reason, &node_type, operator_name}, times); });
    });
  }
  return gradients;
}

variable_list enter(const c10::intrusive_ptr<Node>& root, const GraphTask& task, bool accumulate_grad,
                    const edge_list& inputs) {
  // The engine owns the task, and gives it away as const only because its own tracer does not write to it.
  auto& writable = const_cast<GraphTask&>(task);
  torch_private::leave_out_root_that_begins(*root, writable);
  const SessionPtr session = current_session();
  if (session == nullptr) return torch_private::run_in_engine(root, writable);
  return run(*session, {root, writable, inputs, accumulate_grad ? Wanted::kAccumulated : Wanted::kHandedOut});
}

// A child of fork has only the thread that forked, so no other may hold a lock at that moment.
void guard_forks() {
  const auto release = [] {
    listener_mutex.unlock();
    process_session_mutex().unlock();
    Statistics::mutex().unlock();
    plans().mutex().unlock();
  };
  const auto hold = [] {
    plans().mutex().lock();
    Statistics::mutex().lock();
    process_session_mutex().lock();
    listener_mutex.lock();
  };
  pthread_atfork(hold, release, release);
}

}  // namespace

void take_engine_entry() {
  static const bool guarded = (guard_forks(), true);
  static_cast<void>(guarded);
  torch_private::find_current_node();
  Engine::set_compiled_autograd(enter);
}

void forget_plans() { plans().clear(); }

size_t plans_held() { return plans().size(); }

size_t plan_bytes_held() { return plans().bytes(); }

void set_listener(Listener new_listener) {
  const std::lock_guard lock(listener_mutex);
  listener = std::move(new_listener);
}

}  // namespace backbind
