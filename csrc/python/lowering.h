// The lowering of a backward over a live graph, as records of Python.
#pragma once

#include <torch/csrc/python_headers.h>

#include "plan/lowering.h"
#include "plan/plan.h"
#include "python/object.h"
#include "python/results.h"

namespace backbind::python {

// What the values of a live graph become in the records. Called in the order of the steps; for each, its leaf or its
// arguments, and then what is expected of its gradients.
class ValueWriter : public ElementWriter {
 public:
  virtual void begin_step() {}
  virtual Owned size(const c10::SymInt& value) = 0;
  virtual Owned leaf(const at::Tensor& leaf) = 0;
  // What stands for the live node of a step that runs foreign code; None where there is none.
  virtual Owned live(size_t step) = 0;
  // Whether hooks that unpack saved tensors are called now, so that their results are part of the records.
  virtual bool calls_unpack_hooks() const { return false; }
};

struct LiveLowering {
  const Plan& plan;
  const Lowering& lowering;
  const LiveNodes& nodes;
};

// A list with the record of each step; runtime/backbind/_lowering.py says what is in it.
Owned steps_to_python(const LiveLowering& live, ValueWriter& writer);

// (step, input_nr), or None for an edge that is not followed.
Owned input_ref_to_python(const InputRef& input);

// Functions of the module; runtime/backbind/_C.pyi says what they take and return.
PyObject* lower(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* leaves_of(PyObject* module, PyObject* outputs);

}  // namespace backbind::python
