#include "python/graph_compiler.h"

#include <frameobject.h>

#include <bit>
#include <memory>
#include <utility>

#include "graph/graph_backend.h"
#include "python/bridge.h"
#include "python/kept.h"
#include "python/live_node.h"
#include "python/lowering.h"
#include "python/results.h"
#include "python/tensor_list.h"
#include "replay/replay.h"
#include "torch_private.h"

namespace backbind::python {

namespace {

constexpr const char* kBackend = "backbind.backend";

// Names each tensor, and each size and number that is not baked in, by its place in the lists that a graph is called
// with: ("inputs", 3). Places are read in the order in which lift_values has read them.
class LiftedWriter final : public ValueWriter {
 public:
  explicit LiftedWriter(const GraphSource& source) : source_(source) {
    for (const StepCode& code : source.values.code) live_.push_back(code.is_foreign() ? live_count_++ : -1);
  }

  Owned write(ElementKind kind, const c10::IValue& value) override {
    switch (kind) {
      case ElementKind::kTensor:
        return tensor(value.toTensor());
      case ElementKind::kSymInt:
        return size(value.toSymInt());
      case ElementKind::kInt:
      case ElementKind::kFloat:
        return number(kind, value);
      case ElementKind::kScalar: {
        const at::Scalar scalar = value.toScalar();
        if (scalar.isSymbolic()) return size(scalar.toSymInt());
        const bool is_number = scalar.isFloatingPoint() || scalar.type() == at::ScalarType::Long;
        return is_number ? number(kind, value) : ElementWriter::write(kind, value);
      }
      default:
        return ElementWriter::write(kind, value);
    }
  }

  Owned size(const c10::SymInt& value) override {
    if (!source_.baked.dynamic_sizes[sizes_++]) return sym_int_to_python(value);
    return place("sizes", dynamic_sizes_++);
  }

  Owned leaf(const at::Tensor& leaf) override { return tensor(leaf); }

  Owned live(size_t step) override {
    return live_[step] < 0 ? checked(Py_BuildValue("")) : checked(PyLong_FromLongLong(live_[step]));
  }

  void begin_step() override { unpacked_ = 0; }

  // The gradient of an output.
  Owned root(const at::Tensor& gradient) { return tensor(gradient); }

 private:
  Owned tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return checked(Py_BuildValue(""));
    const int64_t which = source_.values.tensor_order[tensors_++];
    return which == LiftedValues::kUnpackedLater ? place("unpacked", unpacked_++) : place("inputs", which);
  }

  Owned number(ElementKind kind, const c10::IValue& value) {
    if (!source_.baked.dynamic_numbers[numbers_++]) return ElementWriter::write(kind, value);
    return place("scalars", dynamic_numbers_++);
  }

  static Owned place(const char* list, int64_t index) {
    return checked(Py_BuildValue("(sL)", list, static_cast<long long>(index)));
  }

  const GraphSource& source_;
  std::vector<int64_t> live_;
  int64_t live_count_ = 0;
  size_t tensors_ = 0;
  size_t sizes_ = 0;
  size_t numbers_ = 0;
  int64_t dynamic_sizes_ = 0;
  int64_t dynamic_numbers_ = 0;
  int64_t unpacked_ = 0;
};

Owned number_to_python(const Number& number) {
  return number.is_float ? checked(PyFloat_FromDouble(std::bit_cast<double>(number.bits)))
                         : checked(PyLong_FromLongLong(std::bit_cast<int64_t>(number.bits)));
}

// Runs code of Python from code that may not hold the GIL: what it raises goes on as a C++ exception.
template <class Body>
auto with_python(Body body) {
  const GilHeld held;
  forget_translated_errors();
  try {
    return body();
  } catch (const PythonErrorSet&) {
    throw_python_error();
  }
}

class PythonGraph final : public CompiledGraph {
 public:
  // `is_generated` tells whether the callable is a function that was generated from the graph.
  PythonGraph(PyObject* callable, size_t result_count, bool is_generated)
      : callable_(callable), result_count_(result_count), is_generated_(is_generated) {}

  variable_list call(GraphArguments&& arguments) const override {
    return with_python([&] {
      const Owned result = called(std::move(arguments));
      variable_list gradients = optional_tensors_of(result.get(), "what a compiled backward returns");
      TORCH_CHECK_TYPE(gradients.size() == result_count_, "a compiled backward must return ", result_count_,
                       " gradients, got ", gradients.size());
      return gradients;
    });
  }

 private:
  Owned called(GraphArguments&& arguments) const {
    const Owned inputs = list_of(arguments.tensors, tensor_to_python);
    // The list alone holds them from now on, and the callable may empty it.
    arguments.tensors.clear();
    const Owned sizes = list_of(arguments.sizes, sym_int_to_python);
    const Owned scalars = list_of(arguments.numbers, number_to_python);
    const Owned hooks = list_of(arguments.steps, live_node_to_python);
    if (is_generated_ && PyList_Append(hooks.get(), live_node_to_python(std::move(arguments.whole)).get()) < 0)
      throw PythonErrorSet();
    const Owned packed_data = checked(PyList_New(0));
    PyObject* objects[] = {inputs.get(), sizes.get(), scalars.get(), hooks.get(), packed_data.get()};
    Owned result(PyObject_Vectorcall(callable_.get(), objects, 5, nullptr));
    if (!result) {
      if (is_generated_) drop_first_frame();
      throw PythonErrorSet();
    }
    return result;
  }

  // The frame of the generated function says nothing to a user, and would keep its variables alive.
  static void drop_first_frame() {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    if (traceback != nullptr) {
      // Frames that were called from it know it, too.
      auto* frame = reinterpret_cast<PyObject*>(reinterpret_cast<PyTracebackObject*>(traceback)->tb_frame);
      if (const Owned cleared(PyObject_CallMethod(frame, "clear", nullptr)); !cleared) PyErr_Clear();
      PyObject* rest = reinterpret_cast<PyObject*>(reinterpret_cast<PyTracebackObject*>(traceback)->tb_next);
      Py_XINCREF(rest);
      Py_SETREF(traceback, rest);
    }
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value != nullptr) PyException_SetTraceback(value, traceback == nullptr ? Py_None : traceback);
    PyErr_Restore(type, value, traceback);
  }

  const Kept callable_;
  const size_t result_count_;
  const bool is_generated_;
};

class PythonGraphCompiler final : public GraphCompiler {
 public:
  PythonGraphCompiler(PyObject* compile, bool is_generated) : compile_(compile), is_generated_(is_generated) {}

  CompiledGraphPtr compile(const GraphSource& source) const override {
    return with_python([&] {
      LiftedWriter writer(source);
      const variable_list gradients = torch_private::root_gradients(*source.request.graph_root);
      const Owned root_values = list_of(gradients, [&](const at::Tensor& one) { return writer.root(one); });
      const Owned roots = list_of(source.plan.roots, input_ref_to_python);
      const Owned steps = steps_to_python({source.plan, source.lowering, source.nodes}, writer);
      const Owned callable =
          checked(PyObject_CallFunction(compile_.get(), "OOOn", root_values.get(), roots.get(), steps.get(),
                                        static_cast<Py_ssize_t>(source.plan.inputs.size())));
      return std::make_shared<const PythonGraph>(callable.get(), source.plan.inputs.size(), is_generated_);
    });
  }

 private:
  const Kept compile_;
  const bool is_generated_;
};

Dynamic dynamic_of(PyObject* object) {
  if (object == Py_None) return Dynamic::kAutomatic;
  return object == Py_True ? Dynamic::kAlways : Dynamic::kNever;
}

}  // namespace

PyObject* new_graph_backend(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    TORCH_CHECK_TYPE(count == 3, "new_graph_backend() takes a function and two flags, got ", count, " arguments");
    const bool follows_changes = arguments[2] == Py_True;
    BackendPtr backend = std::make_shared<const GraphBackend>(
        std::make_shared<const PythonGraphCompiler>(arguments[0], /*is_generated=*/follows_changes),
        dynamic_of(arguments[1]), follows_changes, NativeBackend::prepare_resumable);
    return capsule_of(std::move(backend), kBackend).release();
  });
}

BackendPtr graph_backend_of(PyObject* capsule) {
  TORCH_CHECK_TYPE(PyCapsule_IsValid(capsule, kBackend) != 0, "expected a backend, got ", Py_TYPE(capsule)->tp_name);
  return *static_cast<BackendPtr*>(PyCapsule_GetPointer(capsule, kBackend));
}

}  // namespace backbind::python
