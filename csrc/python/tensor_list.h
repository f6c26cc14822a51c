// Lists of tensors, some of which may be missing, between Python and C++.
#pragma once

#include <torch/csrc/python_headers.h>

#include <vector>

#include "nodes/binding.h"

namespace backbind::python {

// The tensors of a list or tuple, undefined ones for None. `what` names it in errors.
//
// Throws TypeError for anything else.
variable_list optional_tensors_of(PyObject* sequence, const char* what);

// The same, which empties the list: so the caller may be the only one who has them.
variable_list moved_tensors_of(PyObject* list, const char* what);

}  // namespace backbind::python
