#include "python/live_node.h"

#include <torch/csrc/PyInterpreter.h>

#include <memory>
#include <new>
#include <utility>

#include "python/bridge.h"
#include "python/results.h"
#include "python/tensor_list.h"
#include "torch_private_python_hooks.h"

namespace backbind::python {

namespace {

struct LiveNodeObject {
  PyObject_HEAD
  LiveStep step;
};

// One type for the process, as Python requires; it is set once, when the module is first imported.
PyTypeObject* live_node_type = nullptr;

LiveStep& step_of(PyObject* object) { return reinterpret_cast<LiveNodeObject*>(object)->step; }

// Runs `call` without the GIL and gives its tensors.
template <class Call>
PyObject* tensors_of(Call call) {
  return guarded([&] {
    variable_list results;
    {
      const GilReleased released;
      results = call();
    }
    return gradients_to_python(results).release();
  });
}

template <HookKind kind>
PyObject* live_node_hooks(PyObject* object, PyObject* gradients) {
  return guarded([&] {
    variable_list given = moved_tensors_of(gradients, "gradients");
    return tensors_of([&] { return call_hooks(step_of(object), kind, std::move(given)); });
  });
}

PyObject* live_node_post_hooks(PyObject* object, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    TORCH_CHECK_TYPE(count == 2, "post_hooks() takes results and gradients, got ", count, " arguments");
    variable_list results = optional_tensors_of(arguments[0], "results");
    const variable_list gradients = optional_tensors_of(arguments[1], "gradients");
    return tensors_of([&] { return call_post_hooks(step_of(object), std::move(results), gradients); });
  });
}

PyObject* live_node_call(PyObject* object, PyObject* gradients) {
  return guarded([&] {
    variable_list given = moved_tensors_of(gradients, "gradients");
    return tensors_of([&] { return call_node(step_of(object), std::move(given)); });
  });
}

PyObject* live_node_unpack(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] { return tensors_of([&] { return unpack(step_of(object)); }); });
}

PyObject* live_node_accumulate(PyObject* object, PyObject* gradients) {
  return guarded([&]() -> PyObject* {
    variable_list given = moved_tensors_of(gradients, "gradients");
    {
      const GilReleased released;
      accumulate_with_hooks(step_of(object), std::move(given));
    }
    Py_RETURN_NONE;
  });
}

std::pair<uint32_t, uint32_t> pair_of(PyObject* object) {
  unsigned step = 0;
  unsigned input_nr = 0;
  if (PyArg_ParseTuple(object, "II", &step, &input_nr) == 0) throw PythonErrorSet();
  return {step, input_nr};
}

PyObject* live_node_resume(PyObject* object, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    TORCH_CHECK_TYPE(count == 5, "resume() takes a step, a flag, inputs, gradients and results, got ", count,
                     " arguments");
    const size_t first_step = PyLong_AsSize_t(arguments[0]);
    if (PyErr_Occurred() != nullptr) throw PythonErrorSet();
    const auto inputs = vector_of(arguments[2], "inputs", "pairs", [](PyObject* item, Py_ssize_t) {
      const auto [step, input_nr] = pair_of(item);
      return InputRef{step, input_nr};
    });
    variable_list gradients = moved_tensors_of(arguments[3], "gradients");
    TORCH_CHECK_VALUE(inputs.size() == gradients.size(), "as many inputs as gradients are wanted");
    Progress progress{.first_step = first_step,
                      .has_called_pre_hooks = arguments[1] == Py_True,
                      .buffers = {},
                      .returned = moved_tensors_of(arguments[4], "results")};
    for (size_t i = 0; i < inputs.size(); ++i) progress.buffers.emplace_back(inputs[i], std::move(gradients[i]));
    const auto run = step_of(object).run;
    TORCH_CHECK(run != nullptr, "this node belongs to no running backward");
    return tensors_of([&] { return run->resume(std::move(progress)); });
  });
}

PyObject* live_node_name(PyObject* object, void* /*closure*/) {
  return guarded([&] { return PyUnicode_FromString(step_of(object).node->name().c_str()); });
}

PyObject* live_node_node(PyObject* object, void* /*closure*/) {
  return guarded([&] { return python_node(step_of(object).node).release(); });
}

PyObject* live_node_python_hooks(PyObject* object, void* /*closure*/) {
  return guarded([&]() -> PyObject* {
    const auto hooks = torch_private::python_hooks(*step_of(object).node);
    if (!hooks.has_value()) Py_RETURN_NONE;
    return list_of(*hooks,
                   [](const torch_private::PythonHook& hook) {
                     return checked(Py_BuildValue("(sOi)", kHookKinds[static_cast<size_t>(hook.kind)],
                                                  hook.function.ptr(getPyInterpreter()), hook.index));
                   })
        .release();
  });
}

PyObject* live_node_must_be_left(PyObject* object, void* /*closure*/) {
  const auto& run = step_of(object).run;
  return PyBool_FromLong(run != nullptr && run->must_be_left());
}

PyObject* live_node_end_step(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] {
    const auto& run = step_of(object).run;
    return PyBool_FromLong(run != nullptr && run->end_step(step_of(object).position));
  });
}

PyObject* live_node_release_step(PyObject* object, PyObject* step) {
  return guarded([&]() -> PyObject* {
    const size_t number = PyLong_AsSize_t(step);
    if (PyErr_Occurred() != nullptr) throw PythonErrorSet();
    const auto& run = step_of(object).run;
    TORCH_CHECK(run != nullptr && run->is_running(), "this node belongs to no running backward");
    run->release(number);
    Py_RETURN_NONE;
  });
}

PyObject* live_node_repr(PyObject* object) {
  return guarded([&] { return PyUnicode_FromFormat("<live node %s>", step_of(object).node->name().c_str()); });
}

PyObject* live_node_reduce(PyObject* object, PyObject* /*unused*/) {
  return guarded([&]() -> PyObject* {
    TORCH_CHECK_TYPE(false, "the live node ", step_of(object).node->name(),
                     " has hooks or code of this process, and cannot be copied or stored");
  });
}

void live_node_dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  std::destroy_at(&step_of(object));
  type->tp_free(object);
  Py_DECREF(type);
}

template <class Function>
PyCFunction as_c_function(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef live_node_methods[] = {
    {"tensor_pre_hooks", live_node_hooks<HookKind::kTensorPre>, METH_O,
     "What the hooks on its tensors make of the gradients in a list, which is emptied."},
    {"retain_grad", live_node_hooks<HookKind::kRetainsGrad>, METH_O,
     "Keeps the gradients that are to be retained; the list is emptied."},
    {"pre_hooks", live_node_hooks<HookKind::kPre>, METH_O,
     "What the hooks before the node make of the gradients in a list, which is emptied."},
    {"post_hooks", as_c_function(live_node_post_hooks), METH_FASTCALL,
     "What the hooks behind the node make of its results."},
    {"call", live_node_call, METH_O,
     "The gradients that the node computes of those in a list, which is emptied, as its edges expect them."},
    {"unpack", live_node_unpack, METH_NOARGS, "The saved tensors whose hooks unpack them."},
    {"accumulate", live_node_accumulate, METH_O,
     "Adds the gradient in a list, which is emptied, to the leaf, and calls the hooks behind that."},
    {"end_step", live_node_end_step, METH_NOARGS,
     "To be called behind a step: whether the graph must be left. Modes of the thread that it left behind end here."},
    {"release_step", live_node_release_step, METH_O, "Lets go of what a step of the running backward saved."},
    {"resume", as_c_function(live_node_resume), METH_FASTCALL, "Runs the steps that are left natively."},
    {"__reduce__", live_node_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef live_node_getset[] = {
    {"name", live_node_name, nullptr, "Name of the node: 'MulBackward0'.", nullptr},
    {"node", live_node_node, nullptr, "The node itself, as in tensor.grad_fn.", nullptr},
    {"python_hooks", live_node_python_hooks, nullptr,
     "The kind, function and gradient number of each hook, or None where one is not a function of Python.", nullptr},
    {"must_be_left", live_node_must_be_left, nullptr,
     "Whether foreign code has changed what lies ahead, so that the graph no longer fits.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot live_node_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(live_node_repr)},
    {Py_tp_dealloc, reinterpret_cast<void*>(live_node_dealloc)},
    {Py_tp_methods, live_node_methods},
    {Py_tp_getset, live_node_getset},
    {0, nullptr},
};

PyType_Spec live_node_spec = {
    "backbind._C.LiveNode", sizeof(LiveNodeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    live_node_slots,
};

}  // namespace

void add_live_node_type(PyObject* module) {
  Owned type = checked(PyType_FromSpec(&live_node_spec));
  live_node_type = reinterpret_cast<PyTypeObject*>(type.get());
  if (PyModule_AddObjectRef(module, "LiveNode", type.get()) < 0) throw PythonErrorSet();
  static_cast<void>(type.release());  // kept for the process, as live_node_type
}

Owned live_node_to_python(LiveStep step) {
  Owned object = checked(live_node_type->tp_alloc(live_node_type, 0));
  new (&step_of(object.get())) LiveStep(std::move(step));
  return object;
}

}  // namespace backbind::python
