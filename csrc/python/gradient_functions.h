// What a running graph does with gradients between nodes, as functions.
//
// Two of them take gradients in a list, which they empty: where that list was their only owner, the engine's own rules
// apply to a gradient that nobody else has. A sum reuses its memory, and a leaf takes it over.
#pragma once

#include <torch/csrc/python_headers.h>

namespace backbind::python {

// Functions of the module; runtime/backbind/_C.pyi says what they take and return.
PyObject* validate_grad(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* add_to_buffer(PyObject* module, PyObject* list);
PyObject* accumulate_grad(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

}  // namespace backbind::python
