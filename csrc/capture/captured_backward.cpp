#include "capture/captured_backward.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "capture/choice.h"
#include "capture/devices.h"
#include "capture/listener.h"
#include "plan/store.h"
#include "plan/walk.h"
#include "torch_private.h"

namespace backbind {

namespace {

constexpr size_t kPlansHeld = 128;

// A plan with its lowering takes about 75 bytes for each node. This holds 128 plans of 7,000 nodes, or one of nearly a
// million, and is little beside what a process that trains such graphs holds anyway.
constexpr size_t kPlanBytesHeld = size_t{64} << 20;

// The engine moves a backward inside a backward inside a backward ... to another thread at 60 (MAX_DEPTH), before the
// stack runs out; we leave it to the engine before that.
constexpr int kMaxDepth = 40;

// One for the process: a plan is right for every thread and every session.
PlanStore& plans() {
  static PlanStore store(kPlansHeld, kPlanBytesHeld);
  return store;
}

void count(Session& session, const std::function<void(Counts&)>& change) {
  session.statistics.update(change);
  process_statistics().update(change);
}

// How many backwards this thread runs, one inside the other.
thread_local int depth = 0;

class DepthGuard {
 public:
  DepthGuard() { ++depth; }
  ~DepthGuard() { --depth; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
};

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Decided before anything is walked or looked up.
std::optional<FallbackReason> fallback_reason(const Request& request) {
  if (touches_accelerator(request)) return FallbackReason::kAccelerator;
  if (depth + request.task.reentrant_depth_ >= kMaxDepth) return FallbackReason::kTooDeep;
  return std::nullopt;
}

variable_list run_in_engine(const Request& request) {
  request.note_graph();
  return torch_private::run_in_engine(request.graph_root, request.task);
}

variable_list leave_to_engine(Session& session, const Request& request, FallbackReason reason) {
  const auto place = static_cast<size_t>(reason);
  bool is_first = false;
  process_statistics().update([&](Counts& counts) { is_first = counts.fallbacks[place] == 0; });
  count(session, [&](Counts& counts) { counts.fallbacks[place] += 1; });
  if (is_first) tell_listener("left to the engine", kFallbackReasons[place]);
  return run_in_engine(request);
}

// The nodes of which nothing more is known than how to call them. A Python function needs the GIL to tell its name, so
// names are asked for before any lock is held.
std::map<std::string, uint64_t> opaque_steps(const Plan& plan, const LiveNodes& nodes) {
  std::map<std::string, uint64_t> names;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.runs && !step.is_accumulate_grad && step.binding == nullptr) names[nodes[i]->name()] += 1;
  }
  return names;
}

// Makes a plan for a backward that none was found for, prepares it, and keeps both.
void capture(Session& session, const Request& request, LookUp& found) {
  const Stopwatch stopwatch;
  Walk walked = walk(request.roots(), request.inputs, request.input_grads, request.runs_everything());
  found.nodes = std::move(walked.nodes);
  const auto plan = std::make_shared<const Plan>(std::move(walked.plan));
  if (!plans().keep(request, session.backend, plan, found)) found.difference = {.difference = Difference::kTooLarge};
  const double seconds = stopwatch.seconds();
  const auto opaque = opaque_steps(*plan, found.nodes);
  count(session, [&](Counts& counts) {
    counts.captures += 1;
    counts.capture_seconds += seconds;
    if (found.difference) counts.recaptures.add(*found.difference);
    for (const auto& [name, times] : opaque) counts.opaque_steps.add(name, times);
  });
  const std::string steps = std::to_string(found.nodes.size()) + " steps";
  if (found.difference) {
    tell_listener("recaptured", steps + "; " + found.difference->describe());
  } else {
    tell_listener("captured", steps);
  }
}

void count_run(Session& session, const RunReport& report, size_t steps) {
  if (report.slow_path.empty() && !report.has_compiled && !report.native_run.has_value()) return;
  count(session, [&](Counts& counts) {
    report.slow_path.for_each(
        [&](const std::type_info& node_type, SlowPathReason reason, const std::string* operator_name, uint64_t times) {
          counts.slow_path.add({reason, &node_type, operator_name}, times);
        });
    counts.graphs += report.has_compiled ? 1 : 0;
    counts.compile_seconds += report.compile_seconds;
    if (report.compile_reason.has_value()) counts.recompiles.add(*report.compile_reason);
    if (report.native_run.has_value()) counts.native_runs[static_cast<size_t>(*report.native_run)] += 1;
  });
  if (report.has_compiled) {
    const std::string graph = "a graph of " + std::to_string(steps) + " steps";
    tell_listener("compiled", report.compile_reason.has_value() ? graph + "; " + *report.compile_reason : graph);
  }
}

variable_list run_captured_backward(Session& session, const Request& request) {
  if (const auto reason = fallback_reason(request)) return leave_to_engine(session, request, *reason);
  const Stopwatch stopwatch;
  LookUp found = plans().find(request, session.backend);
  const double look_up_seconds = stopwatch.seconds();
  const bool is_replay = found.plan != nullptr;
  if (!is_replay) capture(session, request, found);
  count(session, [&](Counts& counts) {
    counts.replays += is_replay ? 1 : 0;
    counts.steps += found.plan->steps.size();
    counts.look_up_seconds += look_up_seconds;
  });
  const DepthGuard deeper;
  RunReport report(found.plan->node_types);
  variable_list gradients = found.executable->run(found.nodes, request, report);
  count_run(session, report, found.plan->steps.size());
  return gradients;
}

}  // namespace

variable_list run_handed_over(const Request& request) {
  const SessionPtr session = current_session();
  return session == nullptr ? run_in_engine(request) : run_captured_backward(*session, request);
}

void clear_plans() { plans().clear(); }

size_t plan_count() { return plans().size(); }

size_t plan_bytes() { return plans().bytes(); }

std::mutex& plans_mutex() { return plans().mutex(); }

}  // namespace backbind
