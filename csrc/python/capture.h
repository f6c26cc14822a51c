// capture(), as Python sees it: sessions in capsules, and which of them a thread or the process uses.
#pragma once

#include <torch/csrc/python_headers.h>

namespace backbind::python {

// Functions of the module; runtime/backbind/_C.pyi says what they take and return.
PyObject* new_session(PyObject* module, PyObject* backend);
PyObject* set_context_session(PyObject* module, PyObject* session);
PyObject* invalidate_context_sessions(PyObject* module, PyObject* unused);
PyObject* set_context_lookup(PyObject* module, PyObject* callable);
PyObject* set_process_session(PyObject* module, PyObject* session);
PyObject* is_capturing(PyObject* module, PyObject* unused);
PyObject* install_engine_hook(PyObject* module, PyObject* unused);
PyObject* set_engine_hook_is_ours(PyObject* module, PyObject* is_ours);
PyObject* run_backward(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* counts_of(PyObject* module, PyObject* session);
PyObject* clear_plans(PyObject* module, PyObject* unused);
PyObject* clear_counts(PyObject* module, PyObject* unused);
PyObject* plans_held(PyObject* module, PyObject* unused);
PyObject* set_listener(PyObject* module, PyObject* listener);

}  // namespace backbind::python
