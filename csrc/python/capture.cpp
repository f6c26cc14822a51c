#include "python/capture.h"

#include <string_view>

#include "capture/engine_entry.h"
#include "python/bridge.h"
#include "replay/replay.h"

namespace backbind::python {

namespace {

constexpr const char* kSession = "backbind.session";

Owned session_to_python(const SessionPtr& session) {
  if (session == nullptr) return checked(Py_BuildValue(""));
  auto held = std::make_unique<SessionPtr>(session);
  Owned capsule = checked(PyCapsule_New(held.get(), kSession, [](PyObject* object) {
    const std::unique_ptr<SessionPtr> end(static_cast<SessionPtr*>(PyCapsule_GetPointer(object, kSession)));
  }));
  held.release();  // the capsule owns it now
  return capsule;
}

// Null for None.
SessionPtr session_of(PyObject* object) {
  if (object == Py_None) return nullptr;
  auto* held = static_cast<SessionPtr*>(PyCapsule_GetPointer(object, kSession));
  if (held == nullptr) throw PythonErrorSet();
  return *held;
}

std::map<std::string, uint64_t> in_words(const Detours& detours) {
  std::map<std::string, uint64_t> reasons;
  for (size_t i = 0; i < detours.size(); ++i) {
    if (detours[i] > 0) reasons[kDetours[i]] = detours[i];
  }
  return reasons;
}

Owned reasons_to_python(const std::map<std::string, uint64_t>& reasons) {
  Owned dict = checked(PyDict_New());
  for (const auto& [reason, count] : reasons) {
    const Owned number = checked(PyLong_FromUnsignedLongLong(count));
    // Not PyDict_SetItemString, which keeps every key in a table of the interpreter that only ever grows.
    const Owned key = checked(PyUnicode_FromString(reason.c_str()));
    if (PyDict_SetItem(dict.get(), key.get(), number.get()) < 0) throw PythonErrorSet();
  }
  return dict;
}

// Holds a Python callable for a thread that may not hold the GIL when it lets go of it.
class Callable {
 public:
  explicit Callable(PyObject* object) : object_(object) { Py_INCREF(object); }
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;
  ~Callable() {
    if (Py_IsInitialized() == 0) return;  // the process ends, and Python went first
    const auto state = PyGILState_Ensure();
    Py_DECREF(object_);
    PyGILState_Release(state);
  }

  // What the callable raises is for its own author to see; the backward goes on.
  void call(const char* kind, const std::string& text) const {
    const auto state = PyGILState_Ensure();
    PyObject* result = PyObject_CallFunction(object_, "ss", kind, text.c_str());
    if (result == nullptr) PyErr_WriteUnraisable(object_);
    Py_XDECREF(result);
    PyGILState_Release(state);
  }

 private:
  PyObject* object_;
};

}  // namespace

PyObject* new_session(PyObject* /*module*/, PyObject* backend) {
  return guarded([&] {
    const char* name = PyUnicode_AsUTF8(backend);
    if (name == nullptr) throw PythonErrorSet();
    TORCH_CHECK_VALUE(std::string_view(name) == "native", "no backend is called '", name, "'; there is: native");
    return session_to_python(std::make_shared<Session>(replay)).release();
  });
}

PyObject* choose_for_thread(PyObject* /*module*/, PyObject* choice) {
  return guarded([&]() -> PyObject* {
    ThreadChoice next;
    if (choice != Py_None) next = {.is_made = true, .session = choice == Py_False ? nullptr : session_of(choice)};
    const ThreadChoice before = exchange_thread_choice(std::move(next));
    if (!before.is_made) Py_RETURN_NONE;
    if (before.session == nullptr) Py_RETURN_FALSE;
    return session_to_python(before.session).release();
  });
}

PyObject* choose_for_process(PyObject* /*module*/, PyObject* session) {
  return guarded([&] { return session_to_python(exchange_process_session(session_of(session))).release(); });
}

PyObject* is_capturing(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([] { return PyBool_FromLong(current_session() != nullptr); });
}

PyObject* take_engine_entry(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([]() -> PyObject* {
    backbind::take_engine_entry();
    Py_RETURN_NONE;
  });
}

PyObject* counts_of(PyObject* /*module*/, PyObject* session) {
  return guarded([&] {
    const SessionPtr held = session_of(session);
    const Counts counts = held != nullptr ? held->statistics.read() : process_statistics().read();
    const Owned recaptures = reasons_to_python(counts.recapture_reasons);
    const Owned fallbacks = reasons_to_python(counts.fallback_reasons);
    const Owned opaque = reasons_to_python(counts.opaque_steps);
    const Owned detours = reasons_to_python(in_words(counts.detours));
    return checked(Py_BuildValue(
                       "(KKKKddOOOO)", static_cast<unsigned long long>(counts.captures),
                       static_cast<unsigned long long>(counts.replays), static_cast<unsigned long long>(counts.steps),
                       static_cast<unsigned long long>(counts.fallbacks), counts.look_up_seconds,
                       counts.capture_seconds, recaptures.get(), fallbacks.get(), opaque.get(), detours.get()))
        .release();
  });
}

PyObject* forget_plans(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([]() -> PyObject* {
    backbind::forget_plans();
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
  return guarded([] { return PyLong_FromSize_t(backbind::plans_held()); });
}

PyObject* set_listener(PyObject* /*module*/, PyObject* listener) {
  return guarded([&]() -> PyObject* {
    auto callable = std::make_shared<Callable>(listener);
    backbind::set_listener([callable](const char* kind, const std::string& text) { callable->call(kind, text); });
    Py_RETURN_NONE;
  });
}

}  // namespace backbind::python
