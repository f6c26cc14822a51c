#include "python/arguments.h"

#include <ATen/core/List.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "nodes/memory.h"
#include "python/bridge.h"
#include "python/suggest.h"

namespace backbind::python {

using c10::IValue;

namespace {

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

// Converts one object after another; knows which argument it is at, for messages.
class Converter {
 public:
  explicit Converter(const Binding& binding, ParsedCall& call) : binding_(binding), call_(call) {}

  void grads(PyObject* object) {
    begin("grads", "Sequence[Tensor | None]");
    call_.grads.reserve(open(object));
    each([&](PyObject* item) { call_.grads.push_back(optional_tensor(item)); });
  }

  void needs_input_grad(PyObject* object) {
    begin("needs_input_grad", "Sequence[bool]");
    const size_t count = open(object);
    TORCH_CHECK_VALUE(count == binding_.inputs, binding_.name, "() argument 'needs_input_grad': expected ",
                      binding_.inputs, binding_.inputs == 1 ? " flag" : " flags",
                      ", one for each differentiable input, got ", count);
    uint64_t flags = 0;
    uint64_t bit = 1;
    each([&](PyObject* item) {
      if (boolean(item)) flags |= bit;
      bit <<= 1U;
    });
    call_.arguments.emplace_back(static_cast<int64_t>(flags));
  }

  void saved(const Argument& argument, PyObject* object) {
    begin(argument.name, "");
    kind_ = &argument.kind;
    call_.arguments.push_back(convert(argument.kind, object));
  }

 private:
  void begin(const char* name, const char* expected) {
    name_ = name;
    expected_ = expected;
    kind_ = nullptr;
    items_ = {};
    is_list_ = false;
  }

  // Calls `convert` with the elements of the sequence that was opened. Where one of them runs code, items_ is another
  // array afterwards.
  void each(auto convert) {
    for (position_ = 0; position_ < items_.size(); ++position_) convert(items_[position_]);
  }

  // To be called before anything that may run code of the user's, who holds the list that is being converted and may
  // change it: from here on its elements are ours. Makes no object, because even that may run code, that of finalizers.
  void before_foreign_code() {
    if (!std::exchange(is_list_, false)) return;
    call_.kept.reserve(call_.kept.size() + items_.size());
    held_.assign(items_.begin(), items_.end());
    for (PyObject* item : held_) call_.kept.push_back(shared(item));
    items_ = held_;
  }

  [[noreturn]] void refuse(PyObject* given) {
    before_foreign_code();
    // An object that overrides torch functions (a proxy of a tracer) may be anything; only the dispatcher knows.
    if (overrides_torch_functions(given) && !is_plain_tensor(given)) throw NeedsDispatcher();
    if (is_symbol(given)) throw NeedsDispatcher();
    const std::string type = type_name(given);
    const std::string expected = kind_ == nullptr ? expected_ : describe(*kind_);
    if (position_ >= items_.size() || items_[position_] != given) {
      TORCH_CHECK_TYPE(false, binding_.name, "() argument '", name_, "': expected ", expected, ", got ", type);
    }
    TORCH_CHECK_TYPE(false, binding_.name, "() argument '", name_, "': expected ", expected, ", got ", type,
                     " at position ", position_);
  }

  static bool overrides_torch_functions(PyObject* object) {
    return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__torch_function__") != 0;
  }

  static bool is_symbol(PyObject* object) {
    const std::string type = type_name(object);
    return type == "SymInt" || type == "SymFloat" || type == "SymBool";
  }

  // Makes the elements of a sequence those that each() converts; returns how many there are. A class of lists or tuples
  // that says itself how it is iterated over is a sequence like any other.
  size_t open(PyObject* object) {
    position_ = 0;
    if (PyList_Check(object) && Py_TYPE(object)->tp_iter == PyList_Type.tp_iter) {
      is_list_ = true;
      items_ = {reinterpret_cast<PyListObject*>(object)->ob_item, static_cast<size_t>(PyList_GET_SIZE(object))};
      return items_.size();
    }
    if (PyTuple_Check(object) && Py_TYPE(object)->tp_iter == PyTuple_Type.tp_iter) {
      items_ = {reinterpret_cast<PyTupleObject*>(object)->ob_item, static_cast<size_t>(PyTuple_GET_SIZE(object))};
      return items_.size();
    }
    const bool is_text = PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object);
    if (is_text || !PySequence_Check(object) || overrides_torch_functions(object)) refuse(object);
    call_.kept.push_back(checked(PySequence_Tuple(object)));
    return open(call_.kept.back().get());
  }

  at::Tensor tensor(PyObject* object) {
    if (!is_tensor(object)) refuse(object);
    const at::Tensor& value = tensor_of(object);
    call_.has_wrapped_tensor |= value.key_set().has_any(kStandsForAnother) || !is_plain_tensor(object);
    return value;
  }

  at::Tensor optional_tensor(PyObject* object) { return object == Py_None ? at::Tensor() : tensor(object); }

  bool boolean(PyObject* object) {
    if (!PyBool_Check(object)) refuse(object);
    return object == Py_True;
  }

  int64_t integer(PyObject* object) {
    // Asking whether something is a tensor costs more than all the rest, and an int is the usual case.
    if (PyLong_Check(object)) return long_integer(object);
    // A symbol can be asked for its number, but then it is one for good: the trace would hold for no other size.
    if (!PyIndex_Check(object) || is_tensor(object) || is_symbol(object)) refuse(object);
    before_foreign_code();
    const Owned index(PyNumber_Index(object));
    if (!index) {
      // That something is no integer we say in our words; whatever else went wrong is its author's to say.
      if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw PythonErrorSet();
      PyErr_Clear();
      refuse(object);
    }
    return long_integer(index.get());
  }

  int64_t long_integer(PyObject* object) const {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    TORCH_CHECK_VALUE(overflow == 0, binding_.name, "() argument '", name_, "': the integer does not fit into 64 bits");
    return value;
  }

  double floating(PyObject* object) {
    if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
    if (!PyLong_Check(object)) return static_cast<double>(integer(object));
    const double value = PyLong_AsDouble(object);
    if (value != -1.0 || PyErr_Occurred() == nullptr) return value;
    PyErr_Clear();
    TORCH_CHECK_VALUE(false, binding_.name, "() argument '", name_, "': the integer does not fit into a float");
  }

  at::Scalar scalar(PyObject* object) {
    if (PyBool_Check(object)) return at::Scalar(object == Py_True);
    if (PyFloat_Check(object)) return at::Scalar(PyFloat_AS_DOUBLE(object));
    if (PyComplex_Check(object)) {
      const Py_complex value = PyComplex_AsCComplex(object);
      return at::Scalar(c10::complex<double>(value.real, value.imag));
    }
    if (PyLong_Check(object)) {
      // As in torch: above the range of int64, but not above that of uint64, a number is kept as an unsigned one.
      const unsigned long long value = PyLong_AsUnsignedLongLong(object);
      if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
      } else if (value > static_cast<unsigned long long>(std::numeric_limits<int64_t>::max())) {
        return at::Scalar(static_cast<uint64_t>(value));
      }
    }
    return at::Scalar(integer(object));
  }

  at::ScalarType scalar_type(PyObject* object) {
    if (!THPDtype_Check(object)) refuse(object);
    return reinterpret_cast<THPDtype*>(object)->scalar_type;
  }

  at::Layout layout(PyObject* object) {
    if (!THPLayout_Check(object)) refuse(object);
    return reinterpret_cast<THPLayout*>(object)->layout;
  }

  std::string text(PyObject* object) {
    if (!PyUnicode_Check(object)) refuse(object);
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(object, &size);
    if (data == nullptr) {
      PyErr_Clear();
      TORCH_CHECK_VALUE(false, binding_.name, "() argument '", name_, "': the text is not valid unicode");
    }
    return {data, static_cast<size_t>(size)};
  }

  at::Device device(PyObject* object) {
    if (!THPDevice_Check(object)) refuse(object);
    return reinterpret_cast<THPDevice*>(object)->device;
  }

  IValue convert(ValueKind kind, PyObject* object) {
    switch (kind.form) {
      case Form::kOptional:
        if (object == Py_None) return {};
        [[fallthrough]];
      case Form::kOne:
        return element(kind.element, object);
      case Form::kOptionalList:
        if (object == Py_None) return {};
        [[fallthrough]];
      case Form::kList:
        return list(kind.element, object);
      case Form::kListOfOptional:
        TORCH_INTERNAL_ASSERT(kind.element == ElementKind::kTensor, "no other elements are missing in lists");
        return list_of<std::optional<at::Tensor>>(
            object, [&](PyObject* item) { return item == Py_None ? std::nullopt : std::make_optional(tensor(item)); });
    }
    refuse(object);
  }

  IValue element(ElementKind kind, PyObject* object) {
    switch (kind) {
      case ElementKind::kTensor:
        return tensor(object);
      case ElementKind::kBool:
        return boolean(object);
      case ElementKind::kInt:
      case ElementKind::kSymInt:
        return integer(object);
      case ElementKind::kFloat:
        return floating(object);
      case ElementKind::kScalar:
        return scalar(object);
      case ElementKind::kScalarType:
        return scalar_type(object);
      case ElementKind::kLayout:
        return layout(object);
      case ElementKind::kDevice:
        return device(object);
      case ElementKind::kStr:
        return text(object);
    }
    refuse(object);
  }

  // Lists of those elements of which torch has a list of their own, and lists of anything.
  IValue list(ElementKind kind, PyObject* object) {
    switch (kind) {
      case ElementKind::kTensor:
        return list_of<at::Tensor>(object, [&](PyObject* item) { return tensor(item); });
      case ElementKind::kBool:
        return list_of<bool>(object, [&](PyObject* item) { return boolean(item); });
      case ElementKind::kInt:
      case ElementKind::kSymInt:
        return list_of<int64_t>(object, [&](PyObject* item) { return integer(item); });
      case ElementKind::kFloat:
        return list_of<double>(object, [&](PyObject* item) { return floating(item); });
      case ElementKind::kScalarType:
        return list_of<int64_t>(object, [&](PyObject* item) { return static_cast<int64_t>(scalar_type(item)); });
      case ElementKind::kStr:
        return list_of<std::string>(object, [&](PyObject* item) { return text(item); });
      case ElementKind::kScalar:
      case ElementKind::kLayout:
      case ElementKind::kDevice: {
        c10::impl::GenericList list(kind == ElementKind::kScalar ? c10::TypePtr(c10::NumberType::get())
                                                                 : c10::TypePtr(c10::AnyType::get()));
        list.reserve(open(object));
        each([&](PyObject* item) { list.push_back(element(kind, item)); });
        return list;
      }
    }
    refuse(object);
  }

  template <class T>
  IValue list_of(PyObject* object, auto convert) {
    c10::List<T> list;
    list.reserve(open(object));
    each([&](PyObject* item) { list.push_back(convert(item)); });
    return list;
  }

  const Binding& binding_;
  ParsedCall& call_;
  const char* name_ = "";
  // What is expected: in words, or as a kind.
  const char* expected_ = "";
  const ValueKind* kind_ = nullptr;
  // The elements of the sequence that is being converted, and which of them is; those of a list are only borrowed.
  std::span<PyObject* const> items_;
  size_t position_ = 0;
  bool is_list_ = false;
  std::vector<PyObject*> held_;  // what items_ shows where call_.kept owns the elements of a list
};

constexpr size_t kLeading = 2;  // grads and needs_input_grad

const char* argument_name(const Binding& binding, size_t position) {
  if (position == 0) return "grads";
  if (position == 1) return "needs_input_grad";
  return binding.arguments[position - kLeading].name;
}

// The objects of a call in the order of the signature.
class OrderedArguments {
 public:
  OrderedArguments(const Binding& binding, PyObject* const* objects, size_t count, PyObject* keywords)
      : objects_(objects) {
    const size_t expected = binding.arguments.size() + kLeading;
    if (count == expected && keywords == nullptr) return;  // in order as they are
    TORCH_CHECK_TYPE(count <= expected, binding.name, "() takes ", expected, " arguments, got ", count);
    slots_.resize(expected, nullptr);
    std::copy(objects, objects + count, slots_.begin());
    if (keywords != nullptr) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); ++i) {
        place(binding, PyTuple_GET_ITEM(keywords, i), objects[count + static_cast<size_t>(i)]);
      }
    }
    for (size_t i = 0; i < slots_.size(); ++i) {
      TORCH_CHECK_TYPE(slots_[i] != nullptr, binding.name, "() is missing argument '", argument_name(binding, i),
                       "' (position ", i + 1, " of ", slots_.size(), ")");
    }
    objects_ = slots_.data();
  }

  PyObject* operator[](size_t position) const { return objects_[position]; }

 private:
  void place(const Binding& binding, PyObject* keyword, PyObject* object) {
    const char* name = PyUnicode_AsUTF8(keyword);
    if (name == nullptr) throw PythonErrorSet();
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (std::string_view(argument_name(binding, i)) != name) continue;
      TORCH_CHECK_TYPE(slots_[i] == nullptr, binding.name, "() got argument '", name, "' twice");
      slots_[i] = object;
      return;
    }
    std::vector<std::string_view> known;
    for (size_t i = 0; i < slots_.size(); ++i) known.emplace_back(argument_name(binding, i));
    std::string hint = did_you_mean(name, known);
    if (hint.empty()) hint = "; its arguments are: " + c10::Join(", ", known);
    TORCH_CHECK_TYPE(false, binding.name, "() has no argument '", name, "'", hint);
  }

  PyObject* const* objects_;
  std::vector<PyObject*> slots_;  // used only where the objects have to be put in order
};

}  // namespace

ParsedCall parse_call(const Binding& binding, PyObject* const* objects, size_t count, PyObject* keywords) {
  const OrderedArguments ordered(binding, objects, count, keywords);
  ParsedCall call;
  call.arguments.reserve(binding.arguments.size() + 1);
  Converter convert(binding, call);
  convert.grads(ordered[0]);
  convert.needs_input_grad(ordered[1]);
  for (size_t i = 0; i < binding.arguments.size(); ++i) convert.saved(binding.arguments[i], ordered[i + kLeading]);
  return call;
}

}  // namespace backbind::python
