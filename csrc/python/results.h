// IValues -> Python objects, by the kind that the schema gives them.
#pragma once

#include <torch/csrc/python_headers.h>

#include <span>

#include "nodes/binding.h"
#include "python/object.h"

namespace backbind::python {

// An int, or a torch.SymInt for a symbolic size.
Owned sym_int_to_python(const c10::SymInt& value);

// A list of tensors; undefined ones become None.
Owned gradients_to_python(const variable_list& gradients);

// What one element of an argument becomes: a value by itself, or an item of a list.
class ElementWriter {
 public:
  ElementWriter() = default;
  virtual ~ElementWriter() = default;
  ElementWriter(const ElementWriter&) = delete;
  ElementWriter& operator=(const ElementWriter&) = delete;

  // Its value, unless a subclass says otherwise. Called in the order of the arguments; never for None.
  virtual Owned write(ElementKind kind, const c10::IValue& value);
};

// The tuple (needs_input_grad, *saved) of a packed node.
Owned packed_to_python(const Binding& binding, const ivalue_list& values);
Owned packed_to_python(const Binding& binding, const ivalue_list& values, ElementWriter& writer);

// The tuple of the arguments that carry saved values.
Owned saved_to_python(const Binding& binding, std::span<const c10::IValue> values);

}  // namespace backbind::python
