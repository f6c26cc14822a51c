// What graphs do with gradients between nodes, as functions: the operators backbind::validate_grad and
// backbind::sum_gradients without the dispatcher's Python side.
#pragma once

#include <torch/csrc/python_headers.h>

namespace backbind::python {

// Functions of the module; runtime/backbind/_C.pyi says what they take and return.
PyObject* validate_grad(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* sum_gradients(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

}  // namespace backbind::python
