#include "python/operator.h"

#include <structmember.h>

#include <cstddef>
#include <mutex>

#include "nodes/without_autocast.h"
#include "python/arguments.h"
#include "python/bridge.h"
#include "python/results.h"
#include "thread_modes.h"

namespace backbind::python {

namespace {

struct OperatorObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  const Binding* binding;
  PyObject* overload;  // torch.ops.backbind.<Node>.default, looked up when it is first needed
  PyObject* dict;      // what Python keeps with the operator
};

// One type for the process, as Python requires; it is set once, when the module is first imported.
PyTypeObject* operator_type = nullptr;

OperatorObject* as_operator(PyObject* object) { return reinterpret_cast<OperatorObject*>(object); }

// One thread at a time looks overloads up. torch makes the object on first access, in Python, and two threads in the
// middle of that would be given two; a graph compares its targets by identity. The GIL is free while a thread waits.
class LookUp {
 public:
  LookUp() {
    if (mutex().try_lock()) return;
    Py_BEGIN_ALLOW_THREADS;
    mutex().lock();
    Py_END_ALLOW_THREADS;
  }
  LookUp(const LookUp&) = delete;
  LookUp& operator=(const LookUp&) = delete;
  ~LookUp() { mutex().unlock(); }

 private:
  // Recursive, because an import or a getter that runs meanwhile may ask for another overload.
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex one;
    return one;
  }
};

Owned overload_of(OperatorObject* self) {
  if (self->overload == nullptr) {
    const LookUp look_up;
    const Owned torch = checked(PyImport_ImportModule("torch"));
    const Owned ops = checked(PyObject_GetAttrString(torch.get(), "ops"));
    const Owned ours = checked(PyObject_GetAttrString(ops.get(), "backbind"));
    const Owned packet = checked(PyObject_GetAttrString(ours.get(), self->binding->name));
    Owned overload = checked(PyObject_GetAttrString(packet.get(), "default"));
    // Another thread may have been faster while this one waited.
    if (self->overload == nullptr) self->overload = overload.release();
  }
  return shared(self->overload);
}

PyObject* call_dispatcher(OperatorObject* self, PyObject* const* objects, size_t count, PyObject* keywords) {
  const Owned overload = overload_of(self);
  return PyObject_Vectorcall(overload.get(), objects, count, keywords);
}

PyObject* run(const Binding& binding, Binding::Apply apply, const ParsedCall& call) {
  variable_list gradients;
  {
    const GilReleased released;
    gradients = run_without_autocast(binding, apply, call.grads, call.arguments);
  }
  return gradients_to_python(gradients).release();
}

PyObject* operator_call(PyObject* object, PyObject* const* objects, size_t flagged_count, PyObject* keywords) {
  return guarded([&] {
    OperatorObject* self = as_operator(object);
    const Binding& binding = *self->binding;
    const auto count = static_cast<size_t>(PyVectorcall_NARGS(flagged_count));
    try {
      const ParsedCall call = parse_call(binding, objects, count, keywords);
      if (!call.has_wrapped_tensor && !has_active_modes()) return run(binding, binding.apply, call);
    } catch (const NeedsDispatcher&) {
    }
    return call_dispatcher(self, objects, count, keywords);
  });
}

PyObject* operator_call_unchecked(PyObject* object, PyObject* const* objects, Py_ssize_t count) {
  return guarded([&] {
    OperatorObject* self = as_operator(object);
    const Binding& binding = *self->binding;
    try {
      const ParsedCall call = parse_call(binding, objects, static_cast<size_t>(count), nullptr);
      if (!call.has_wrapped_tensor && !has_active_modes()) {
        variable_list gradients;
        {
          const GilReleased released;
          gradients = binding.apply(call.grads, call.arguments);
        }
        return gradients_to_python(gradients).release();
      }
    } catch (const NeedsDispatcher&) {
    }
    return call_dispatcher(self, objects, static_cast<size_t>(count), nullptr);
  });
}

PyObject* operator_delegate(PyObject* object, PyObject* const* objects, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const Binding& binding = *as_operator(object)->binding;
    try {
      const ParsedCall call = parse_call(binding, objects, static_cast<size_t>(count), keywords);
      return run(binding, binding.apply_delegate, call);
    } catch (const NeedsDispatcher&) {
      TORCH_CHECK_TYPE(false, binding.name, ".delegate() takes plain values only");
    }
  });
}

PyObject* operator_convert(PyObject* object, PyObject* const* objects, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const Binding& binding = *as_operator(object)->binding;
    try {
      const ParsedCall call = parse_call(binding, objects, static_cast<size_t>(count), keywords);
      return saved_to_python(binding, std::span(call.arguments).subspan(1)).release();
    } catch (const NeedsDispatcher&) {
      Py_RETURN_NONE;
    }
  });
}

PyObject* operator_name(PyObject* object, void* /*closure*/) {
  return PyUnicode_FromString(as_operator(object)->binding->name);
}

PyObject* operator_schema(PyObject* object, void* /*closure*/) {
  return PyUnicode_FromFormat("backbind::%s", as_operator(object)->binding->schema);
}

PyObject* operator_mode(PyObject* object, void* /*closure*/) {
  return PyUnicode_FromString(as_operator(object)->binding->is_inline ? "inline" : "delegate");
}

PyObject* operator_overload(PyObject* object, void* /*closure*/) {
  return guarded([&] { return overload_of(as_operator(object)).release(); });
}

PyObject* operator_arguments(PyObject* object, void* /*closure*/) {
  return guarded([&] {
    const Owned list = list_of(as_operator(object)->binding->arguments, [](const Argument& argument) {
      return checked(Py_BuildValue("(ss)", argument.name, describe(argument.kind).c_str()));
    });
    return PyList_AsTuple(list.get());
  });
}

PyObject* operator_repr(PyObject* object) {
  return PyUnicode_FromFormat("<backbind.ops.%s>", as_operator(object)->binding->name);
}

// Operators live as long as their module, and pickle, copy and deepcopy by name.
PyObject* operator_reduce(PyObject* object, PyObject* /*unused*/) {
  const Owned module = Owned(PyImport_ImportModule("backbind.ops"));
  if (!module) return nullptr;
  const Owned find = Owned(PyObject_GetAttrString(module.get(), "get"));
  if (!find) return nullptr;
  return Py_BuildValue("(O(s))", find.get(), as_operator(object)->binding->name);
}

int operator_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(as_operator(object)->overload);
  Py_VISIT(as_operator(object)->dict);
  return 0;
}

int operator_clear(PyObject* object) {
  Py_CLEAR(as_operator(object)->overload);
  Py_CLEAR(as_operator(object)->dict);
  return 0;
}

void operator_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  operator_clear(object);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

// Python's view of calling an operator, for those who look: Dynamo inlines it. The interpreter itself calls through the
// slots, which assigning to the attribute would replace.
PyObject* operator_describe_call(PyObject* type, PyObject* function) {
  if (PyDict_SetItemString(reinterpret_cast<PyTypeObject*>(type)->tp_dict, "__call__", function) < 0) return nullptr;
  PyType_Modified(reinterpret_cast<PyTypeObject*>(type));
  Py_RETURN_NONE;
}

PyMethodDef operator_methods[] = {
    {"delegate", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(operator_delegate)),
     METH_FASTCALL | METH_KEYWORDS,
     "Run the node struct itself, whatever the operator's mode: the reference that an inline formula is compared "
     "with."},
    {"_call_unchecked", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(operator_call_unchecked)),
     METH_FASTCALL, "Call the operator with values of a live graph, which eager does not check either."},
    {"_convert", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(operator_convert)),
     METH_FASTCALL | METH_KEYWORDS,
     "The saved values of a call as the operator would receive them, or None where only the dispatcher understands."},
    {"_describe_call", operator_describe_call, METH_O | METH_CLASS,
     "Make a Python function the attribute __call__ of the type, without changing how operators are called."},
    {"__reduce__", operator_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef operator_getset[] = {
    {"name", operator_name, nullptr, "Name of the node: 'MulBackward0'.", nullptr},
    {"__name__", operator_name, nullptr, nullptr, nullptr},
    {"__qualname__", operator_name, nullptr, nullptr, nullptr},
    {"schema", operator_schema, nullptr, "Schema in the dispatcher, with its namespace.", nullptr},
    {"mode", operator_mode, nullptr,
     "'inline' where the formula itself is compiled, 'delegate' where the node struct is called.", nullptr},
    {"overload", operator_overload, nullptr, "The same operator in the dispatcher, a torch._ops.OpOverload.", nullptr},
    {"_arguments", operator_arguments, nullptr, "Name and Python type of each argument that carries a saved value.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef operator_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OperatorObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(OperatorObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot operator_slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(operator_repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(operator_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(operator_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(operator_dealloc)},
    {Py_tp_methods, operator_methods},
    {Py_tp_getset, operator_getset},
    {Py_tp_members, operator_members},
    {0, nullptr},
};

PyType_Spec operator_spec = {
    "backbind._C.Operator",
    sizeof(OperatorObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    operator_slots,
};

}  // namespace

void add_operator_type(PyObject* module) {
  Owned type = checked(PyType_FromSpec(&operator_spec));
  operator_type = reinterpret_cast<PyTypeObject*>(type.get());
  if (PyModule_AddObjectRef(module, "Operator", type.get()) < 0) throw PythonErrorSet();
  static_cast<void>(type.release());  // kept for the process, as operator_type
}

Owned make_operator(const Binding& binding) {
  Owned object = checked(operator_type->tp_alloc(operator_type, 0));
  OperatorObject* self = as_operator(object.get());
  self->vectorcall = operator_call;
  self->binding = &binding;
  return object;
}

}  // namespace backbind::python
