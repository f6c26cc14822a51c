#include "python/results.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Layout.h>

#include "python/bridge.h"

namespace backbind::python {

namespace {

Owned integer_to_python(int64_t value) { return checked(PyLong_FromLongLong(value)); }

Owned dtype_to_python(int64_t number) {
  return shared(reinterpret_cast<PyObject*>(torch::getTHPDtype(static_cast<at::ScalarType>(number))));
}

Owned scalar_to_python(const at::Scalar& scalar) {
  if (scalar.isSymbolic()) return symbol_to_python(scalar);
  if (scalar.isBoolean()) return checked(PyBool_FromLong(scalar.toBool()));
  if (scalar.isIntegral(/*includeBool=*/false)) {
    // Only a number above the range of int64 is held as an unsigned one.
    return scalar.type() == at::ScalarType::UInt64 ? checked(PyLong_FromUnsignedLongLong(scalar.toUInt64()))
                                                   : integer_to_python(scalar.toLong());
  }
  if (scalar.isComplex()) {
    const auto value = scalar.toComplexDouble();
    return checked(PyComplex_FromDoubles(value.real(), value.imag()));
  }
  return checked(PyFloat_FromDouble(scalar.toDouble()));
}

Owned element_to_python(ElementKind kind, const c10::IValue& value) {
  switch (kind) {
    case ElementKind::kTensor:
      return tensor_to_python(value.toTensor());
    case ElementKind::kBool:
      return checked(PyBool_FromLong(value.toBool()));
    case ElementKind::kInt:
      return integer_to_python(value.toInt());
    case ElementKind::kSymInt:
      return sym_int_to_python(value.toSymInt());
    case ElementKind::kFloat:
      return checked(PyFloat_FromDouble(value.toDouble()));
    case ElementKind::kScalar:
      return scalar_to_python(value.toScalar());
    case ElementKind::kScalarType:
      return dtype_to_python(value.toInt());
    case ElementKind::kLayout:
      return shared(reinterpret_cast<PyObject*>(torch::getTHPLayout(value.toLayout())));
    case ElementKind::kDevice:
      return checked(THPDevice_New(value.toDevice()));
    case ElementKind::kStr: {
      const std::string& text = value.toStringRef();
      return checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
    }
  }
  return shared(Py_None);
}

Owned value_to_python(ValueKind kind, const c10::IValue& value, ElementWriter& writer) {
  if (value.isNone()) return shared(Py_None);
  if (kind.form == Form::kOne || kind.form == Form::kOptional) return writer.write(kind.element, value);
  // A list of numbers is held unboxed, so its elements are boxed one by one.
  const auto list = value.toList();
  std::vector<c10::IValue> items;
  items.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) items.push_back(list.get(i));
  return list_of(items, [&](const c10::IValue& item) {
    return item.isNone() ? shared(Py_None) : writer.write(kind.element, item);
  });
}

Owned saved_to_python(const Binding& binding, std::span<const c10::IValue> values, ElementWriter& writer) {
  if (values.empty()) return checked(PyTuple_New(0));  // the one empty tuple, which others hold
  Owned tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  const UntilFilled hidden(tuple);
  for (size_t i = 0; i < values.size(); ++i) {
    Owned item = value_to_python(binding.arguments[i].kind, values[i], writer);
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item.release());
  }
  hidden.filled();
  return tuple;
}

}  // namespace

Owned sym_int_to_python(const c10::SymInt& value) {
  if (const auto number = value.maybe_as_int()) return integer_to_python(*number);
  return symbol_to_python(value);
}

Owned gradients_to_python(const variable_list& gradients) { return list_of(gradients, tensor_to_python); }

Owned ElementWriter::write(ElementKind kind, const c10::IValue& value) { return element_to_python(kind, value); }

Owned packed_to_python(const Binding& binding, const ivalue_list& values) {
  ElementWriter writer;
  return packed_to_python(binding, values, writer);
}

Owned packed_to_python(const Binding& binding, const ivalue_list& values, ElementWriter& writer) {
  const auto needed = values[0].toBoolList();
  const Owned flags = list_of(needed, [](bool flag) { return checked(PyBool_FromLong(flag)); });
  const Owned leading = checked(PyTuple_Pack(1, flags.get()));
  const Owned saved = saved_to_python(binding, std::span(values).subspan(1), writer);
  return checked(PySequence_Concat(leading.get(), saved.get()));
}

Owned saved_to_python(const Binding& binding, std::span<const c10::IValue> values) {
  ElementWriter writer;
  return saved_to_python(binding, values, writer);
}

}  // namespace backbind::python
