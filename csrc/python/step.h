// One step of a replay alone: what the formulas of a live node give, so that each can be compared with its node.
#pragma once

#include <torch/csrc/python_headers.h>

namespace backbind::python {

// run_step(node, gradients, wanted): the gradients that a replay computes for a live node without calling it, one for
// each edge, or None where a replay calls the node.
PyObject* run_step(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

}  // namespace backbind::python
