// Live nodes in the hands of a graph: objects whose methods call a node's hooks, its code, or what unpacks its tensors.
#pragma once

#include <torch/csrc/python_headers.h>

#include "graph/graph_run.h"
#include "python/object.h"

namespace backbind::python {

void add_live_node_type(PyObject* module);

Owned live_node_to_python(LiveStep step);

}  // namespace backbind::python
