#include "python/capture.h"

#include <torch/csrc/autograd/engine.h>

#include <array>
#include <atomic>
#include <map>
#include <string>
#include <string_view>

#include "capture/captured_backward.h"
#include "capture/choice.h"
#include "capture/direct_entry.h"
#include "capture/engine_hook.h"
#include "capture/listener.h"
#include "nodes/memory.h"
#include "plan/node_type_name.h"
#include "python/bridge.h"
#include "python/graph_compiler.h"
#include "python/kept.h"
#include "replay/replay.h"

namespace backbind::python {

namespace {

constexpr const char* kSession = "backbind.session";

// What is counted together because there is too much of it.
constexpr const char* kOthers = "others";

Owned session_to_python(const SessionPtr& session) {
  if (session == nullptr) return checked(Py_BuildValue(""));
  return capsule_of(session, kSession);
}

// Null for None.
SessionPtr session_of(PyObject* object) {
  if (object == Py_None) return nullptr;
  auto* held = static_cast<SessionPtr*>(PyCapsule_GetPointer(object, kSession));
  if (held == nullptr) throw PythonErrorSet();
  return *held;
}

// Not PyDict_SetItemString, which keeps every key in a table of the interpreter that only ever grows.
void put(PyObject* dict, const std::string& key, const Owned& value) {
  const Owned text = checked(PyUnicode_FromString(key.c_str()));
  if (PyDict_SetItem(dict, text.get(), value.get()) < 0) throw PythonErrorSet();
}

Owned number(uint64_t count) { return checked(PyLong_FromUnsignedLongLong(count)); }

Owned counts_to_python(const std::map<std::string, uint64_t>& counts, uint64_t others = 0) {
  Owned dict = checked(PyDict_New());
  for (const auto& [key, count] : counts) put(dict.get(), key, number(count));
  if (others > 0) put(dict.get(), kOthers, number(others));
  return dict;
}

// How often each reason was counted that was, by its text.
template <size_t count>
Owned reasons_to_python(const std::array<uint64_t, count>& counts, const std::array<const char*, count>& texts) {
  std::map<std::string, uint64_t> reasons;
  for (size_t i = 0; i < count; ++i) {
    if (counts[i] > 0) reasons[texts[i]] = counts[i];
  }
  return counts_to_python(reasons);
}

Owned recaptures_to_python(const Counts& counts) {
  std::map<std::string, uint64_t> texts;
  for (const auto& [mismatch, count] : counts.recaptures.counts()) texts[mismatch.describe()] += count;
  return counts_to_python(texts, counts.recaptures.others());
}

// The nodes that took the slow path, for each reason.
Owned slow_path_to_python(const Counts& counts) {
  std::map<std::string, std::map<std::string, uint64_t>> reasons;
  for (const auto& [kind, count] : counts.slow_path.counts()) {
    std::string reason = kSlowPathReasons[static_cast<size_t>(kind.reason)];
    if (kind.operator_name != nullptr) reason += " aten::" + *kind.operator_name;
    reasons[reason][node_type_name(*kind.node_type)] += count;
  }
  if (const uint64_t others = counts.slow_path.others(); others > 0) reasons[kOthers][kOthers] = others;
  Owned dict = checked(PyDict_New());
  for (const auto& [reason, nodes] : reasons) put(dict.get(), reason, counts_to_python(nodes));
  return dict;
}

// What the callable raises is for its own author to see; the backward goes on.
void tell(PyObject* callable, const char* kind, const std::string& text) {
  const GilHeld held;
  const Owned result(PyObject_CallFunction(callable, "ss", kind, text.c_str()));
  if (!result) PyErr_WriteUnraisable(callable);
}

// Tells which session the running context has chosen. Never let go of, because threads may run backwards while the
// process ends.
PyObject* context_session = nullptr;

// Python counts in each thread how often another context began to run there. Without that number every backward asks.
template <class State>
uint64_t version_of(const State* state) {
  if constexpr (requires { state->context_ver; }) {
    return state == nullptr ? 0 : state->context_ver;
  } else {
    static std::atomic<uint64_t> next = 1;
    return next++;
  }
}

// Whether the tensor is one of whom a formula of the engine would see nothing but its numbers.
bool is_ordinary(PyObject* object) {
  return is_plain_tensor(object) && has_memory(tensor_of(object)) && tensor_of(object).device().is_cpu();
}

// The roots of a backward and their gradients; false for anything but ordinary tensors.
bool read_roots(PyObject* tensors, PyObject* gradients, torch::autograd::edge_list& roots, variable_list& values) {
  if (!PyTuple_CheckExact(tensors) || !PyTuple_CheckExact(gradients)) return false;
  const Py_ssize_t count = PyTuple_GET_SIZE(tensors);
  if (count == 0 || count != PyTuple_GET_SIZE(gradients)) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* tensor = PyTuple_GET_ITEM(tensors, i);
    PyObject* gradient = PyTuple_GET_ITEM(gradients, i);
    if (!is_ordinary(tensor) || !is_ordinary(gradient)) return false;
    roots.push_back(torch::autograd::impl::gradient_edge(tensor_of(tensor)));
    if (!roots.back().is_valid()) return false;
    values.push_back(tensor_of(gradient));
  }
  return true;
}

uint64_t context_version() { return version_of(PyGILState_GetThisThreadState()); }

SessionPtr session_of_context() {
  if (Py_IsInitialized() == 0) return nullptr;
  const GilHeld held;
  SessionPtr session;
  if (const Owned handle(PyObject_CallNoArgs(context_session)); !handle) {
    PyErr_WriteUnraisable(context_session);
  } else if (handle.get() != Py_None) {
    session = session_of(handle.get());
  }
  return session;
}

}  // namespace

PyObject* new_session(PyObject* /*module*/, PyObject* backend) {
  return guarded([&] {
    BackendPtr runner = backend == Py_None ? native_backend() : graph_backend_of(backend);
    return session_to_python(std::make_shared<Session>(std::move(runner))).release();
  });
}

PyObject* set_context_session(PyObject* /*module*/, PyObject* session) {
  return guarded([&]() -> PyObject* {
    backbind::set_context_session(session_of(session));
    Py_RETURN_NONE;
  });
}

PyObject* invalidate_context_sessions(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([]() -> PyObject* {
    backbind::invalidate_context_sessions();
    Py_RETURN_NONE;
  });
}

PyObject* set_context_lookup(PyObject* /*module*/, PyObject* callable) {
  return guarded([&]() -> PyObject* {
    Py_INCREF(callable);
    Py_XSETREF(context_session, callable);
    set_contexts({.version = context_version, .session = session_of_context});
    Py_RETURN_NONE;
  });
}

PyObject* set_process_session(PyObject* /*module*/, PyObject* session) {
  return guarded([&] { return session_to_python(backbind::set_process_session(session_of(session))).release(); });
}

PyObject* is_capturing(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([] { return PyBool_FromLong(current_session() != nullptr); });
}

PyObject* install_engine_hook(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([]() -> PyObject* {
    {
      // The first time, a node is evaluated in another thread, which wants the GIL in anomaly mode.
      const GilReleased released;
      backbind::install_engine_hook();
    }
    Py_RETURN_NONE;
  });
}

PyObject* set_engine_hook_is_ours(PyObject* /*module*/, PyObject* is_ours) {
  return guarded([&]() -> PyObject* {
    const bool value = is_ours == Py_True;
    {
      // Backwards of other threads that are waited for may want the GIL.
      const GilReleased released;
      backbind::set_engine_hook_is_ours(value);
    }
    Py_RETURN_NONE;
  });
}

PyObject* run_backward(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    TORCH_CHECK_TYPE(count == 3, "run_backward() takes tensors, gradients and keep_graph, got ", count, " arguments");
    torch::autograd::edge_list roots;
    variable_list gradients;
    if (!PyBool_Check(arguments[2]) || !read_roots(arguments[0], arguments[1], roots, gradients)) Py_RETURN_FALSE;
    const bool keep_graph = arguments[2] == Py_True;
    // In a child of fork torch makes its engine anew when it is first asked for it, and wants the GIL for that.
    torch::autograd::Engine::get_default_engine();
    bool has_run = false;
    {
      const GilReleased released;
      has_run = run_backward_directly(std::move(roots), std::move(gradients), keep_graph);
    }
    return PyBool_FromLong(has_run);
  });
}

PyObject* counts_of(PyObject* /*module*/, PyObject* session) {
  return guarded([&] {
    const SessionPtr held = session_of(session);
    const Counts counts = held != nullptr ? held->statistics.read() : process_statistics().read();
    const Owned recaptures = recaptures_to_python(counts);
    const Owned fallbacks = reasons_to_python(counts.fallbacks, kFallbackReasons);
    const Owned opaque = counts_to_python(counts.opaque_steps.counts(), counts.opaque_steps.others());
    const Owned slow_path = slow_path_to_python(counts);
    const Owned recompiles = counts_to_python(counts.recompiles.counts(), counts.recompiles.others());
    const Owned native_runs = reasons_to_python(counts.native_runs, kNativeRunReasons);
    return checked(Py_BuildValue("(KKKddOOOOKdOO)", static_cast<unsigned long long>(counts.captures),
                                 static_cast<unsigned long long>(counts.replays),
                                 static_cast<unsigned long long>(counts.steps), counts.look_up_seconds,
                                 counts.capture_seconds, recaptures.get(), fallbacks.get(), opaque.get(),
                                 slow_path.get(), static_cast<unsigned long long>(counts.graphs),
                                 counts.compile_seconds, recompiles.get(), native_runs.get()))
        .release();
  });
}

PyObject* clear_plans(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([]() -> PyObject* {
    backbind::clear_plans();
    Py_RETURN_NONE;
  });
}

PyObject* clear_counts(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([]() -> PyObject* {
    process_statistics().clear();
    Py_RETURN_NONE;
  });
}

PyObject* plans_held(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([] {
    return checked(Py_BuildValue("(KK)", static_cast<unsigned long long>(plan_count()),
                                 static_cast<unsigned long long>(plan_bytes())))
        .release();
  });
}

PyObject* set_listener(PyObject* /*module*/, PyObject* listener) {
  return guarded([&]() -> PyObject* {
    auto callable = std::make_shared<const Kept>(listener);
    backbind::set_listener(
        [callable](const char* kind, const std::string& text) { tell(callable->get(), kind, text); });
    Py_RETURN_NONE;
  });
}

}  // namespace backbind::python
