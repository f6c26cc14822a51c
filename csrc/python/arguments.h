// Python objects -> the arguments of a functional operator, with errors written for people.
#pragma once

#include <torch/csrc/python_headers.h>

#include <vector>

#include "nodes/binding.h"
#include "python/object.h"

namespace backbind::python {

// Thrown for an object that only the dispatcher understands (a symbolic integer, a proxy of a tracer): the call then
// goes through torch.ops instead.
struct NeedsDispatcher {};

struct ParsedCall {
  variable_list grads;
  ivalue_list arguments;
  // The elements of lists that may change while they are converted, and tuples made of other sequences.
  std::vector<Owned> kept;
  // Whether a tensor is wrapped (fake, batched, a subclass ...), so that the call must go through the dispatcher.
  bool has_wrapped_tensor = false;
};

// Converts the arguments of a call, given as the vectorcall protocol hands them over: `count` positional ones, then
// one for each name in `keywords` (a tuple, or null).
//
// Throws TypeError or ValueError (as c10 errors) naming the node, the argument, what was expected and what was given.
ParsedCall parse_call(const Binding& binding, PyObject* const* objects, size_t count, PyObject* keywords);

}  // namespace backbind::python
