#include "python/walk.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <ranges>

#include "capture/walk.h"
#include "graph/expected_grad.h"
#include "hooks/present.h"
#include "ivalue/pack.h"
#include "python/bridge.h"
#include "python/results.h"

namespace backbind::python {

using torch::autograd::edge_list;
using torch::autograd::Node;

namespace {

edge_list edges_of(PyObject* tensors, const char* what) {
  TORCH_CHECK_TYPE(PyList_Check(tensors), what, " must be a list of tensors, got ", Py_TYPE(tensors)->tp_name);
  edge_list edges;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i) {
    // Held, because finding the edge of a view may run code, which may change the list.
    const Owned item = shared(PyList_GET_ITEM(tensors, i));
    TORCH_CHECK_TYPE(is_tensor(item.get()), what, " must be tensors, element ", i, " is a ",
                     Py_TYPE(item.get())->tp_name);
    const at::Tensor& tensor = tensor_of(item.get());
    TORCH_CHECK(tensor.requires_grad(), "element ", i, " of ", what,
                " does not require grad and does not have a grad_fn");
    edges.push_back(torch::autograd::impl::gradient_edge(tensor));
  }
  return edges;
}

c10::TensorImpl& impl_of(PyObject* tensor) {
  TORCH_CHECK_TYPE(is_tensor(tensor), "expected a tensor, got ", Py_TYPE(tensor)->tp_name);
  return *tensor_of(tensor).unsafeGetTensorImpl();
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
  needed.reserve(step.target_count);
  for (const Target& target : walk.plan.targets_of(step)) needed.push_back(target.is_followed());
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
    if (!has_operator(step) || !hooks_present(*walk.nodes[i], step.runs).empty()) return false;
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

// Where a gradient arrives that `source` sends, null for that of an output; None where it is not needed.
Owned arrival_to_python(const Walk& walk, const Target& target, const Node* source) {
  if (!target.is_followed()) return none();
  const auto& metadata = walk.nodes[target.step]->input_metadata(target.input);
  const Owned expected = expected_to_python(expected_grad(metadata, source));
  return checked(Py_BuildValue("(IIO)", target.step, target.input, expected.get()));
}

Owned gradient_to_python(const Target& target) {
  if (!target.is_followed()) return none();
  return checked(Py_BuildValue("(II)", target.step, target.input));
}

Owned step_to_python(const Walk& walk, size_t position, const Packed& packed) {
  const Step& step = walk.plan.steps[position];
  Node& node = *walk.nodes[position];
  const Owned hooks = list_of(hooks_present(node, step.runs),
                              [](const std::string& name) { return checked(PyUnicode_FromString(name.c_str())); });
  const Owned targets =
      list_of(walk.plan.targets_of(step), [&](const Target& target) { return arrival_to_python(walk, target, &node); });
  const Owned values = packed.values.empty() ? none() : packed_to_python(*step.binding, packed.values);
  const char* operator_name = step.binding != nullptr ? step.binding->name : nullptr;
  PyObject* has_unpack_hooks = packed.has_unpack_hooks ? Py_True : Py_False;
  return checked(Py_BuildValue("(szzIOOOOO)", node.name().c_str(), operator_name, kind_of(step, node),
                               static_cast<unsigned>(step.slot_count), step.runs ? Py_True : Py_False, hooks.get(),
                               has_unpack_hooks, values.get(), targets.get()));
}

}  // namespace

PyObject* walk_graph(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    TORCH_CHECK_TYPE(count == 3, "walk() takes outputs, inputs and call_unpack_hooks, got ", count, " arguments");
    // The edges keep the nodes alive: nothing else does so for the accumulator of a leaf that is an output.
    const edge_list root_edges = edges_of(arguments[0], "outputs");
    const edge_list inputs = edges_of(arguments[1], "inputs");
    const bool call_unpack_hooks = arguments[2] == Py_True;
    const Walk walked = walk(root_edges, inputs);
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
    const Owned steps = list_of(positions, [&](size_t i) { return step_to_python(walked, i, packed[i]); });
    const Owned outputs = list_of(
        walked.plan.roots, [&](const Target& target) { return arrival_to_python(walked, target, /*source=*/nullptr); });
    const Owned gradients = list_of(walked.plan.gradients, gradient_to_python);
    return checked(Py_BuildValue("(OOO)", steps.get(), outputs.get(), gradients.get())).release();
  });
}

PyObject* is_wrapped_number(PyObject* /*module*/, PyObject* tensor) {
  return guarded([&] { return PyBool_FromLong(impl_of(tensor).is_wrapped_number()); });
}

PyObject* mark_wrapped_number(PyObject* /*module*/, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    TORCH_CHECK_VALUE(impl_of(tensor).dim() == 0, "only a tensor of no dimensions can stand for a number");
    impl_of(tensor).set_wrapped_number(true);
    Py_RETURN_NONE;
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
