// capture(), as Python sees it: sessions in capsules, and which of them a thread or the process uses.
#pragma once

#include <torch/csrc/python_headers.h>

namespace backbind::python {

// Functions of the module; runtime/backbind/_C.pyi says what they take and return.
PyObject* new_session(PyObject* module, PyObject* backend);
PyObject* choose_for_context(PyObject* module, PyObject* session);
PyObject* forget_chosen_sessions(PyObject* module, PyObject* unused);
PyObject* set_chosen(PyObject* module, PyObject* callable);
PyObject* choose_for_process(PyObject* module, PyObject* session);
PyObject* is_capturing(PyObject* module, PyObject* unused);
PyObject* take_engine_entry(PyObject* module, PyObject* unused);
PyObject* counts_of(PyObject* module, PyObject* session);
PyObject* forget_plans(PyObject* module, PyObject* unused);
PyObject* clear_counts(PyObject* module, PyObject* unused);
PyObject* plans_held(PyObject* module, PyObject* unused);
PyObject* set_listener(PyObject* module, PyObject* listener);

}  // namespace backbind::python
