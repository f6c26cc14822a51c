#include "python/lowering.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <ranges>

#include "gradients/expected_grad.h"
#include "hooks/node_hooks.h"
#include "ivalue/pack.h"
#include "plan/lowering.h"
#include "plan/walk.h"
#include "python/bridge.h"
#include "python/results.h"

namespace backbind::python {

using torch::autograd::edge_list;
using torch::autograd::Node;

namespace {

edge_list edges_of(PyObject* tensors, const char* what) {
  return vector_of(tensors, what, "tensors", [&](PyObject* item, Py_ssize_t i) {
    TORCH_CHECK_TYPE(is_tensor(item), what, " must be tensors, element ", i, " is a ", Py_TYPE(item)->tp_name);
    const at::Tensor& tensor = tensor_of(item);
    TORCH_CHECK(tensor.requires_grad(), "element ", i, " of ", what,
                " does not require grad and does not have a grad_fn");
    return torch::autograd::impl::gradient_edge(tensor);
  });
}

Owned none() { return checked(Py_BuildValue("")); }

// The saved values of a step that has an operator.
struct Packed {
  ivalue_list values;
  bool has_unpack_hooks = false;
};

Packed pack_step(const Walk& walk, size_t position, UnpackHooks unpack_hooks) {
  const Step& step = walk.plan.steps[position];
  if (step.binding == nullptr) return {};
  // As the walk decided it: an edge whose gradient nobody asked for is not needed.
  std::vector<bool> needed;
  needed.reserve(step.num_edges);
  for (const InputRef& edge : walk.plan.next_edges_of(step)) needed.push_back(edge.is_followed());
  PackWriter writer(*walk.nodes[position], &needed, unpack_hooks);
  step.binding->pack(*walk.nodes[position], writer);
  const bool has_unpack_hooks = writer.has_unpack_hooks();
  return {writer.take(), has_unpack_hooks};
}

bool has_operator(const Step& step) { return !step.runs || step.binding != nullptr; }

// Whether nothing but hooks of saved tensors may stand in the way of a graph.
bool is_traceable(const Walk& walk) {
  for (size_t i = 0; i < walk.nodes.size(); ++i) {
    const Step& step = walk.plan.steps[i];
    if (!has_operator(step) || !hook_kinds(*walk.nodes[i], step.runs).empty()) return false;
  }
  return true;
}

// What a node is that has no operator, or null.
const char* kind_of(const Step& step, Node& node) {
  if (has_operator(step)) return nullptr;
  if (is_python_function(node)) return "python";
  return dynamic_cast<torch::autograd::CopySlices*>(&node) != nullptr ? "copy_slices" : "cpp";
}

Owned expected_to_python(const std::optional<ExpectedGrad>& expected) {
  if (!expected.has_value()) return none();
  const Owned sizes = list_of(expected->sizes, sym_int_to_python);
  const Owned device = expected->device.has_value() ? checked(THPDevice_New(*expected->device)) : none();
  PyObject* dtype =
      expected->dtype.has_value() ? reinterpret_cast<PyObject*>(torch::getTHPDtype(*expected->dtype)) : Py_None;
  return checked(Py_BuildValue("(OOO)", sizes.get(), dtype, device.get()));
}

// What is expected of the gradient that `source` sends to an input; null for that of an output.
Owned expected_at(const Walk& walk, const InputRef& input, const Node* source) {
  if (!input.is_followed()) return none();
  return expected_to_python(expected_grad(walk.nodes[input.step]->input_metadata(input.input_nr), source));
}

Owned input_ref_to_python(const InputRef& input) {
  if (!input.is_followed()) return none();
  return checked(Py_BuildValue("(II)", input.step, input.input_nr));
}

// What an operation works on, besides its step.
Owned operand_to_python(const Walk& walk, size_t position, const Operation& operation) {
  const Step& step = walk.plan.steps[position];
  switch (operation.kind) {
    case OperationKind::kReturnGrad: {
      const ReturnedGrad& returned = walk.plan.returned_grads_of(step)[operation.operand];
      return checked(Py_BuildValue("(II)", returned.input_nr, returned.result));
    }
    case OperationKind::kValidateGrads:
      return list_of(walk.plan.next_edges_of(step),
                     [&](const InputRef& edge) { return expected_at(walk, edge, walk.nodes[position]); });
    case OperationKind::kAddToBuffer: {
      const Owned input = input_ref_to_python(walk.plan.next_edges_of(step)[operation.operand]);
      return checked(Py_BuildValue("(IO)", operation.operand, input.get()));
    }
    default:
      return none();
  }
}

Owned operation_to_python(const Walk& walk, size_t position, const Operation& operation) {
  const Owned operand = operand_to_python(walk, position, operation);
  return checked(Py_BuildValue("(sO)", kOperationNames[static_cast<size_t>(operation.kind)], operand.get()));
}

Owned step_to_python(const Walk& walk, const Lowering& lowering, size_t position, const Packed& packed) {
  const Step& step = walk.plan.steps[position];
  Node& node = *walk.nodes[position];
  const Owned hooks = list_of(hook_kinds(node, step.runs),
                              [](const std::string& name) { return checked(PyUnicode_FromString(name.c_str())); });
  const Owned values = packed.values.empty() ? none() : packed_to_python(*step.binding, packed.values);
  const Owned operations = list_of(lowering.operations_of(position), [&](const Operation& operation) {
    return operation_to_python(walk, position, operation);
  });
  const char* operator_name = step.binding != nullptr ? step.binding->name : nullptr;
  PyObject* has_unpack_hooks = packed.has_unpack_hooks ? Py_True : Py_False;
  return checked(Py_BuildValue("(szzIOOOO)", node.name().c_str(), operator_name, kind_of(step, node),
                               static_cast<unsigned>(step.num_inputs), hooks.get(), has_unpack_hooks, values.get(),
                               operations.get()));
}

Owned root_to_python(const Walk& walk, const InputRef& root) {
  const Owned input = input_ref_to_python(root);
  const Owned expected = expected_at(walk, root, /*source=*/nullptr);
  return checked(Py_BuildValue("(OO)", input.get(), expected.get()));
}

}  // namespace

PyObject* lower(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    TORCH_CHECK_TYPE(count == 3, "lower() takes outputs, inputs and call_unpack_hooks, got ", count, " arguments");
    // The edges keep the nodes alive: nothing else does so for the AccumulateGrad of a leaf that is an output.
    const edge_list root_edges = edges_of(arguments[0], "outputs");
    const edge_list inputs = edges_of(arguments[1], "inputs");
    const bool call_unpack_hooks = arguments[2] == Py_True;
    const Walk walked = walk(root_edges, inputs);
    const Lowering lowering(walked.plan);
    const auto positions = std::views::iota(size_t{0}, walked.nodes.size());

    std::vector<Packed> packed;
    for (const size_t i : positions) packed.push_back(pack_step(walked, i, UnpackHooks::kLeave));
    const bool traceable = is_traceable(walked);
    for (const size_t i : positions) {
      if (!traceable || (packed[i].has_unpack_hooks && !call_unpack_hooks)) {
        packed[i].values.clear();
      } else if (packed[i].has_unpack_hooks) {
        packed[i] = pack_step(walked, i, UnpackHooks::kCall);
      }
    }
    const Owned roots = list_of(walked.plan.roots, [&](const InputRef& root) { return root_to_python(walked, root); });
    const Owned steps = list_of(positions, [&](size_t i) { return step_to_python(walked, lowering, i, packed[i]); });
    return checked(Py_BuildValue("(OO)", roots.get(), steps.get())).release();
  });
}

PyObject* leaves_of(PyObject* /*module*/, PyObject* outputs) {
  return guarded([&] {
    const edge_list edges = leaf_edges(edges_of(outputs, "outputs"));
    return list_of(edges,
                   [](const torch::autograd::Edge& edge) {
                     return tensor_to_python(static_cast<torch::autograd::AccumulateGrad&>(*edge.function).variable);
                   })
        .release();
  });
}

}  // namespace backbind::python
