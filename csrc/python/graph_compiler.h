// The graph backends, as Python sees them: a function that makes something callable of a backward's records.
#pragma once

#include <torch/csrc/python_headers.h>

#include "plan/executable.h"

namespace backbind::python {

// new_graph_backend(compile, dynamic, follows_changes): a backend in a capsule; a function of the module. `dynamic` is
// None for what was seen to change, or tells whether everything is.
PyObject* new_graph_backend(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

// The backend in such a capsule. Throws TypeError for anything else.
BackendPtr graph_backend_of(PyObject* capsule);

}  // namespace backbind::python
