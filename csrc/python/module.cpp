// The extension module backbind._C: thin, no logic. Everything it offers is wrapped by runtime/backbind.
#include <torch/csrc/python_headers.h>

#include <string_view>
#include <vector>

#include "graph/gradient_operators.h"
#include "nodes/operators.h"
#include "nodes/registry.h"
#include "python/bridge.h"
#include "python/capture.h"
#include "python/gradient_functions.h"
#include "python/graph_compiler.h"
#include "python/live_node.h"
#include "python/lowering.h"
#include "python/operator.h"
#include "python/results.h"
#include "python/step.h"
#include "python/suggest.h"
#include "python/wrapped_number.h"

namespace backbind::python {

namespace {

PyObject* make_operators(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded(
      [] { return list_of(all_bindings(), [](const Binding* binding) { return make_operator(*binding); }).release(); });
}

PyObject* binding_name(PyObject* /*module*/, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const auto node = node_of(object);
    const Binding* binding = node ? find_binding(*node) : nullptr;
    if (binding == nullptr) Py_RETURN_NONE;
    return PyUnicode_FromString(binding->name);
  });
}

PyObject* pack_node(PyObject* /*module*/, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const auto node = node_of(object);
    const Binding* binding = node ? find_binding(*node) : nullptr;
    if (binding == nullptr) Py_RETURN_NONE;
    return packed_to_python(*binding, pack(*binding, *node)).release();
  });
}

// The text of a Python string while that lives. What UTF-8 cannot say, such as half of a surrogate pair, is near no
// name.
std::string_view text_of(PyObject* string) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(string, &size);
  if (text != nullptr) return {text, static_cast<size_t>(size)};
  PyErr_Clear();
  return {};
}

PyObject* nearest_name_of(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t /*count*/) {
  return guarded([&]() -> PyObject* {
    const Owned names = checked(PySequence_Fast(arguments[1], "the known names must be a sequence"));
    std::vector<std::string_view> known;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(names.get()); ++i) {
      known.push_back(text_of(PySequence_Fast_GET_ITEM(names.get(), i)));
    }
    const auto found = nearest_name(text_of(arguments[0]), known);
    if (!found.has_value()) Py_RETURN_NONE;
    return PyUnicode_FromStringAndSize(found->data(), static_cast<Py_ssize_t>(found->size()));
  });
}

PyMethodDef methods[] = {
    {"make_operators", make_operators, METH_NOARGS, "An operator object for each binding, ordered by name."},
    {"binding_name", binding_name, METH_O, "Name of the binding of a live node, or None."},
    {"nearest_name", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(nearest_name_of)), METH_FASTCALL,
     "The one of several names that somebody probably meant, or None."},
    {"pack", pack_node, METH_O, "(needs_input_grad, *saved) of a live node, or None where no binding knows it."},
    {"run_step", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_step)), METH_FASTCALL,
     "What a replay computes for a live node without calling it, or None where it calls the node; for tests."},
    {"lower", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(lower)), METH_FASTCALL,
     "The steps of a backward in the engine's order, without running it."},
    {"is_wrapped_number", is_wrapped_number, METH_O, "Whether a tensor stands for a number of Python."},
    {"mark_wrapped_number", mark_wrapped_number, METH_O, "Makes a tensor stand for a number of Python."},
    {"leaves", leaves_of, METH_O, "The leaves that a backward reaches, in the engine's order."},
    {"new_graph_backend", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(new_graph_backend)), METH_FASTCALL,
     "A backend that has a function make something callable of a backward."},
    {"accumulate_grad", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(accumulate_grad)), METH_FASTCALL,
     "Adds the gradient in a list, which is emptied, to a leaf as the engine does."},
    {"validate_grad", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(validate_grad)), METH_FASTCALL,
     "A gradient as the engine hands it on: the operator backbind::validate_grad."},
    {"add_to_buffer", add_to_buffer, METH_O, "The sum of the two gradients in a list, which is emptied."},
    {"new_session", new_session, METH_O, "A session whose backwards run in a backend; for None in the native one."},
    {"set_context_session", set_context_session, METH_O, "Sets what backwards of the running context run in."},
    {"invalidate_context_sessions", invalidate_context_sessions, METH_NOARGS,
     "Has every thread ask anew what was chosen."},
    {"set_context_lookup", set_context_lookup, METH_O, "Sets who tells what the running context has chosen."},
    {"set_process_session", set_process_session, METH_O,
     "Sets what other threads' backwards run in; gives what it was."},
    {"is_capturing", is_capturing, METH_NOARGS, "Whether a backward of this thread runs in a session."},
    {"install_engine_hook", install_engine_hook, METH_NOARGS, "Has the engine hand its backwards over."},
    {"set_engine_hook_is_ours", set_engine_hook_is_ours, METH_O, "Tells whether that is still so, or again."},
    {"run_backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_backward)), METH_FASTCALL,
     "Runs a captured backward without the engine's walk of its graph; False where the engine has to."},
    {"counts", counts_of, METH_O, "The counts of a session, or for None those of the process."},
    {"clear_plans", clear_plans, METH_NOARGS, "Forgets all plans."},
    {"clear_counts", clear_counts, METH_NOARGS, "Sets the counts of the process to zero."},
    {"plans_held", plans_held, METH_NOARGS, "How many plans are kept."},
    {"set_listener", set_listener, METH_O, "Has a function called with what happens to backwards."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "backbind._C",
    "The compiled part of backbind; use the package instead.",
    -1,
    methods,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace

}  // namespace backbind::python

PyMODINIT_FUNC PyInit__C() {
  using namespace backbind::python;
  return guarded([]() -> PyObject* {
    Owned module = checked(PyModule_Create(&definition));
    add_operator_type(module.get());
    add_live_node_type(module.get());
    if (PyModule_AddStringConstant(module.get(), "torch_version", BACKBIND_TORCH_VERSION) < 0) return nullptr;
    backbind::register_operators();
    backbind::register_gradient_operators();
    return module.release();
  });
}
