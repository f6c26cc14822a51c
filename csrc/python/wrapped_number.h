// Tensors that stand for a number of Python, and so do not decide about the dtype of a result.
#pragma once

#include <torch/csrc/python_headers.h>

namespace backbind::python {

// _C.is_wrapped_number(tensor: Tensor) -> bool
PyObject* is_wrapped_number(PyObject* module, PyObject* tensor);

// _C.mark_wrapped_number(tensor: Tensor): makes it one, which no copy of a wrapped number is by itself.
PyObject* mark_wrapped_number(PyObject* module, PyObject* tensor);

}  // namespace backbind::python
