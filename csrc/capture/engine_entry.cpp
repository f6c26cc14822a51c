#include "capture/engine_entry.h"

#include <ATen/DeviceAccelerator.h>
#include <pthread.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>

#include <chrono>
#include <optional>

#include "capture/store.h"
#include "torch_private.h"

namespace backbind {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::Node;

namespace {

constexpr size_t kPlansHeld = 128;

// The engine moves a backward inside a backward inside a backward ... to another thread at 60, before the stack runs
// out; we leave it to the engine before that.
constexpr int kDeepest = 40;

// Sequence numbers are counted by each thread for itself.
constexpr const char* kOutOfSequence =
    "nodes that were not numbered in the order of their graph: several threads made it";

PlanStore& plans() {
  static PlanStore store(kPlansHeld);
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

bool is_on_accelerator(const LiveNodes& nodes) {
  for (const Node* node : nodes) {
    for (uint32_t i = 0; i < node->num_inputs(); ++i) {
      if (!node->input_metadata(i).was_default_constructed() && !node->input_metadata(i).device().is_cpu()) return true;
    }
  }
  return false;
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Why a backward is the engine's business, or null.
const char* reason_to_fall_back(const Request& request) {
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

std::shared_ptr<const Plan> capture(Session& session, const Request& request, LiveNodes& nodes,
                                    const std::optional<std::string>& difference) {
  const Stopwatch stopwatch;
  Walk walked = walk(request.roots(), request.inputs, request.wanted, request.everything());
  nodes = std::move(walked.nodes);
  auto plan = std::make_shared<const Plan>(std::move(walked.plan));
  const double seconds = stopwatch.seconds();
  // A Python function needs the GIL to tell its name, so names are asked for before any lock is held.
  std::map<std::string, uint64_t> opaque;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Step& step = plan->steps[i];
    if (step.runs && !step.accumulates && step.binding == nullptr) opaque[nodes[i]->name()] += 1;
  }
  count(session, [&](Counts& counts) {
    counts.captures += 1;
    counts.capture_seconds += seconds;
    if (difference) counts.recapture_reasons[*difference] += 1;
    if (!plan->follows_sequence) counts.recapture_reasons[kOutOfSequence] += 1;
    for (const auto& [name, times] : opaque) counts.opaque_steps[name] += times;
  });
  tell(difference ? "recaptured" : "captured",
       std::to_string(nodes.size()) + " steps" + (difference ? ", because of " + *difference : ""));
  return plan;
}

variable_list run(Session& session, const Request& request) {
  if (const char* reason = reason_to_fall_back(request)) return leave_to_engine(session, request, reason);
  LiveNodes nodes;
  Mismatch mismatch;
  std::shared_ptr<const Plan> nearest;
  const Stopwatch stopwatch;
  auto plan = plans().find(request, nodes, mismatch, nearest);
  const double look_up_seconds = stopwatch.seconds();
  const bool is_replay = plan != nullptr;
  if (!is_replay) {
    std::optional<std::string> difference;
    if (nearest != nullptr) difference = mismatch.describe(*nearest);
    plan = capture(session, request, nodes, difference);
  }
  if (at::getAccelerator().has_value() && is_on_accelerator(nodes))
    return leave_to_engine(session, request, "tensors on an accelerator");
  if (!is_replay && plan->follows_sequence) plans().keep(request, plan);
  count(session, [&](Counts& counts) {
    counts.replays += is_replay ? 1 : 0;
    counts.steps += plan->steps.size();
    counts.look_up_seconds += look_up_seconds;
  });
  const Deeper deeper;
  Detours detours{};
  variable_list gradients = session.backend(*plan, nodes, request, detours);
  if (detours != Detours{}) {
    count(session, [&](Counts& counts) {
      for (size_t i = 0; i < detours.size(); ++i) counts.detours[i] += detours[i];
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

void set_listener(Listener new_listener) {
  const std::lock_guard lock(listener_mutex);
  listener = std::move(new_listener);
}

}  // namespace backbind
