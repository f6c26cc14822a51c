#include "python/step.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "nodes/autograd_keys.h"
#include "nodes/registry.h"
#include "python/bridge.h"
#include "python/tensor_list.h"

namespace backbind::python {

namespace {

std::vector<uint8_t> flags_of(PyObject* list) {
  return vector_of(list, "wanted", "bools", [](PyObject* item, Py_ssize_t i) {
    TORCH_CHECK_TYPE(PyBool_Check(item), "wanted must be bools, element ", i, " is a ", Py_TYPE(item)->tp_name);
    return static_cast<uint8_t>(item == Py_True ? 1 : 0);
  });
}

}  // namespace

PyObject* run_step(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    TORCH_CHECK_TYPE(count == 3, "run_step() takes a node, gradients and flags, got ", count, " arguments");
    const auto node = node_of(arguments[0]);
    const variable_list gradients = optional_tensors_of(arguments[1], "gradients");
    const std::vector<uint8_t> wanted = flags_of(arguments[2]);
    const Binding* binding = node ? find_binding(*node) : nullptr;
    if (binding == nullptr || !binding->has_step_for(*node)) Py_RETURN_NONE;
    TORCH_CHECK_VALUE(gradients.size() == node->num_inputs(), binding->name, " takes ", node->num_inputs(),
                      " gradients, got ", gradients.size());
    TORCH_CHECK_VALUE(wanted.size() == node->num_outputs(), binding->name, " has ", node->num_outputs(), " edges, got ",
                      wanted.size(), " flags");
    if (!std::ranges::all_of(gradients, is_plain_dense)) Py_RETURN_NONE;
    std::vector<at::Tensor> results(wanted.size());
    bool has_run = false;
    {
      const GilReleased released;
      const at::NoGradGuard no_graph;
      has_run = binding->step(*node, {gradients, wanted, results});
    }
    if (!has_run) Py_RETURN_NONE;
    return list_of(results, tensor_to_python).release();
  });
}

}  // namespace backbind::python
