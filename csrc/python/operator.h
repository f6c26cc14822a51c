// The Python type of a functional operator: a callable that converts its arguments and runs the binding directly, and
// goes through the dispatcher whenever something there would want to see the call.
#pragma once

#include <torch/csrc/python_headers.h>

#include "nodes/binding.h"
#include "python/object.h"

namespace backbind::python {

// Makes the type `backbind._C.Operator` and adds it to the module.
void add_operator_type(PyObject* module);

// A new operator object for a binding.
Owned make_operator(const Binding& binding);

}  // namespace backbind::python
