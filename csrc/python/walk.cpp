#include "python/walk.h"

#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <ranges>

#include "capture/walk.h"
#include "graph/fit.h"
#include "hooks/present.h"
#include "nodes/registry.h"
#include "python/bridge.h"
#include "python/results.h"

namespace backbind::python {

using torch::autograd::edge_list;

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
    TORCH_CHECK(tensor.requires_grad(), "element ", i, " of ", what, " does not require grad and has no grad_fn");
    edges.push_back(torch::autograd::impl::gradient_edge(tensor));
  }
  return edges;
}

Owned none() { return checked(Py_BuildValue("")); }

// None where the edge is not followed.
Owned slot_to_python(const Target& target) {
  if (!target.is_followed()) return none();
  return checked(Py_BuildValue("(II)", target.step, target.input));
}

Owned fit_to_python(const std::optional<Fit>& fit) {
  if (!fit.has_value()) return none();
  const Owned sizes = list_of(fit->sizes, sym_int_to_python);
  return checked(Py_BuildValue("(OO)", sizes.get(), torch::getTHPDtype(fit->dtype)));
}

Owned targets_to_python(const Walk& walk, size_t position) {
  return list_of(walk.plan.targets_of(walk.plan.steps[position]), [&](const Target& target) {
    if (!target.is_followed()) return none();
    const Owned fit = fit_to_python(fit_for(walk, position, target));
    return checked(Py_BuildValue("(IIO)", target.step, target.input, fit.get()));
  });
}

// needs_input_grad as the walk decided it: an edge whose gradient nobody asked for is not needed.
Owned packed_of(const Walk& walk, size_t position) {
  const Step& step = walk.plan.steps[position];
  if (step.binding == nullptr) return none();
  std::vector<bool> needed;
  needed.reserve(step.target_count);
  for (const Target& target : walk.plan.targets_of(step)) needed.push_back(target.is_followed());
  return packed_to_python(*step.binding, pack(*step.binding, *walk.nodes[position], &needed));
}

Owned step_to_python(const Walk& walk, size_t position) {
  const Step& step = walk.plan.steps[position];
  torch::autograd::Node& node = *walk.nodes[position];
  const auto hooks = hooks_present(node, step.runs);
  const Owned names =
      list_of(hooks, [](const std::string& name) { return checked(PyUnicode_FromString(name.c_str())); });
  // A step that stops the walk anyway (a hook, an unknown node) is reported, so its saved values stay untouched.
  const Owned packed = hooks.empty() ? packed_of(walk, position) : none();
  const Owned targets = targets_to_python(walk, position);
  return checked(Py_BuildValue("(szIOOOO)", node.name().c_str(), step.binding != nullptr ? step.binding->name : nullptr,
                               static_cast<unsigned>(step.slot_count), step.runs ? Py_True : Py_False, names.get(),
                               packed.get(), targets.get()));
}

}  // namespace

PyObject* walk_graph(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    TORCH_CHECK_TYPE(count == 2, "walk() takes roots and wanted tensors, got ", count, " arguments");
    // The edges keep the nodes alive: nothing else does so for the accumulator of a leaf that is a root.
    const edge_list root_edges = edges_of(arguments[0], "roots");
    const edge_list inputs = edges_of(arguments[1], "inputs");
    const Walk walked = walk(root_edges, inputs);
    const Owned steps = list_of(std::views::iota(size_t{0}, walked.nodes.size()),
                                [&](size_t position) { return step_to_python(walked, position); });
    const Owned roots = list_of(walked.plan.roots, slot_to_python);
    const Owned gradients = list_of(walked.plan.gradients, slot_to_python);
    return checked(Py_BuildValue("(OOO)", steps.get(), roots.get(), gradients.get())).release();
  });
}

PyObject* leaves_of(PyObject* /*module*/, PyObject* roots) {
  return guarded([&] {
    const edge_list edges = leaf_edges(edges_of(roots, "roots"));
    return list_of(edges,
                   [](const torch::autograd::Edge& edge) {
                     return tensor_to_python(static_cast<torch::autograd::AccumulateGrad&>(*edge.function).variable);
                   })
        .release();
  });
}

}  // namespace backbind::python
